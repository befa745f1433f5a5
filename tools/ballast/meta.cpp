// SPDX-License-Identifier: Apache-2.0
// ballast meta: the string metadata of a file: list, get, set, remove. Editing rewrites the header alone; the
// data is copied by the kernel and is the same to the byte.
#include <algorithm>
#include <fstream>
#include <set>

#include "ballast/error.h"
#include "ballast/safetensors.h"
#include "commands.h"
#include "fail.h"
#include "table.h"
#include "text.h"
#include "written.h"

namespace tool {
namespace {

struct MetaOptions {
  std::string file;
  std::string action;
  std::vector<std::string> words;
  std::string out;
  bool force = false;
};

[[noreturn]] void refuse(std::string_view what) {
  fail(ballast::Errc::invalid_argument, "meta", "{}", what);
}

int list(Session& session, const MetaOptions& options, const ballast::Checkpoint& checkpoint) {
  if (session.json) {
    JsonStream json(session.out);
    json.begin_object()
        .member("schema", 1)
        .member("file", options.file)
        .member("format", checkpoint.format.name());
    write_metadata(json.key("metadata"), checkpoint.metadata.value_or(ballast::Metadata()));
    json.finish();
    return kFine;
  }
  Table table({{"KEY"}, {"VALUE"}});
  table.stream(session.out, session.stdout_terminal);
  for (const auto& [key, value] : checkpoint.metadata.value_or(ballast::Metadata()))
    table.add({ballast::display(key), ballast::display(value)});
  if (table.empty())
    session.note(fmt::format("{} has no metadata", ballast::display(options.file)));
  else
    table.print(session.out, session.stdout_terminal);
  return kFine;
}

int get(Session& session, const MetaOptions& options, const ballast::Checkpoint& checkpoint) {
  if (options.words.size() != 1) refuse("get takes one KEY: ballast meta FILE get KEY");
  const ballast::Metadata metadata = checkpoint.metadata.value_or(ballast::Metadata());
  const auto found = metadata.find(options.words[0]);
  if (found == metadata.end()) {
    std::vector<std::string> keys;
    for (const auto& entry : metadata) keys.push_back(entry.first);
    const std::string_view near = nearest(options.words[0], keys);
    fail(ballast::Errc::not_found, ballast::display(options.file), "no metadata {}{}",
         ballast::quoted(options.words[0]),
         near.empty() ? "" : fmt::format("; did you mean {}?", ballast::quoted(near)));
  }
  if (session.json) {
    write_document(session.out,
                   {{"schema", 1}, {"file", options.file}, {"key", found->first}, {"value", found->second}});
  } else if (session.stdout_terminal.is_terminal) {
    session.out.line(ballast::display(found->second, found->second.size()));
  } else {
    session.out.line(found->second);  // a program reads it: exactly what is there
  }
  return kFine;
}

// The file, or all shards of an index: each has metadata of its own.
struct Part {
  std::string path;
  ballast::Checkpoint bare;  // as it stands there: ties are metadata, not tensors

  [[nodiscard]] ballast::Metadata metadata() const { return bare.metadata.value_or(ballast::Metadata()); }
};

bool is_encrypted(const std::string& path) {
  constexpr std::string_view kAge = "age-encryption.org/";
  std::string first(kAge.size(), '\0');
  std::ifstream(path, std::ios::binary).read(first.data(), static_cast<std::streamsize>(first.size()));
  return first == kAge;
}

Part part_of(const std::string& path, ballast::Format format) {
  if (is_encrypted(path))
    fail(ballast::Errc::unsupported, ballast::display(path),
         "is encrypted with age, and is not changed in place");
  if (!format->holds_metadata)
    fail(ballast::Errc::unsupported, ballast::display(path),
         "is {}; metadata can be changed in Safetensors files only (ballast convert makes one)",
         format.name());
  return {path, ballast::safetensors::open(path, {.io = ballast::Io::read})};
}

std::vector<Part> parts_of(const ballast::Checkpoint& checkpoint) {
  std::vector<Part> parts;
  if (checkpoint.format != ballast::formats::sharded) {
    parts.push_back(part_of(checkpoint.path, checkpoint.format));
    return parts;
  }
  const ballast::Value map = ballast::open_value(checkpoint.path, "weight_map");
  std::set<std::string> names;
  for (std::size_t i = 0; i < map.size(); ++i) names.emplace(map.value(i).as_string());
  const std::string folder = checkpoint.path.substr(0, checkpoint.path.find_last_of('/') + 1);
  for (const std::string& name : names)
    parts.push_back(part_of(folder + name, ballast::open(folder + name, {.io = ballast::Io::read}).format));
  return parts;
}

ballast::Metadata changed(const MetaOptions& options, ballast::Metadata metadata) {
  for (const std::string& word : options.words) {
    const std::size_t equals = word.find('=');
    if (options.action == "rm")
      metadata.erase(word);
    else
      metadata[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return metadata;
}

void require_sense(const MetaOptions& options, const std::vector<Part>& parts) {
  if (options.words.empty()) refuse(options.action == "set" ? "set takes KEY=VALUE..." : "rm takes KEY...");
  for (const std::string& word : options.words) {
    const std::size_t equals = word.find('=');
    if (options.action == "set" && (equals == std::string::npos || equals == 0))
      refuse(fmt::format("{} is not KEY=VALUE", ballast::quoted(word)));
    const bool is_there = std::any_of(parts.begin(), parts.end(),
                                      [&](const Part& part) { return part.metadata().contains(word); });
    if (options.action == "rm" && !is_there)
      fail(ballast::Errc::not_found, ballast::display(options.file), "no metadata {}", ballast::quoted(word));
  }
}

// Keys by which tensors are what they are: tied, quantized, in some layout.
void require_harmless(const MetaOptions& options, const ballast::Checkpoint& checkpoint,
                      const std::vector<Part>& parts) {
  for (const std::string& word : options.words) {
    const std::string key = options.action == "rm" ? word : word.substr(0, word.find('='));
    const bool is_tensor =
        std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.bare.contains(key); });
    const bool is_tie = checkpoint.contains(key) && !is_tensor;
    if (options.force || (!is_tie && !key.starts_with("ballast."))) continue;
    fail(ballast::Errc::invalid_argument, ballast::display(options.file),
         "{} says {}; -f changes it all the same", ballast::quoted(key),
         is_tie ? "that a tensor has a second name" : "what its tensors are to Ballast");
  }
}

// Shards one after the other, and those that say it already not at all: what an interruption leaves is
// finished by the same command.
void write(Session& session, const MetaOptions& options, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    ballast::safetensors::HeaderEdit change;
    change.metadata = changed(options, part.metadata());
    const bool in_place = options.out.empty();
    if (in_place && parts.size() > 1 && *change.metadata == part.metadata()) continue;
    const std::string& out = in_place ? part.path : options.out;
    ProgressBar bar = session.progress("write", out);
    ballast::safetensors::edit(part.path, out, change,
                               {.overwrite = in_place || options.force, .progress = bar.callback()});
  }
}

int edit(Session& session, const MetaOptions& options, const ballast::Checkpoint& checkpoint) {
  const std::vector<Part> parts = parts_of(checkpoint);
  require_sense(options, parts);
  require_harmless(options, checkpoint, parts);
  if (!options.out.empty()) {
    if (checkpoint.format == ballast::formats::sharded)
      refuse("-o makes a copy of one file; 'ballast shard IN OUT --meta KEY=VALUE' makes one of shards");
    require_free(options.out, options.force);
    ballast::require_apart({options.file}, {options.out});
  }
  write(session, options, parts);
  const std::string& written = options.out.empty() ? options.file : options.out;
  ballast::Metadata now;
  for (const Part& part : parts) now.merge(changed(options, part.metadata()));
  if (session.json) {
    JsonStream json(session.out);
    json.begin_object().member("schema", 1).member("file", written);
    write_metadata(json.key("metadata"), now);
    json.finish();
  } else if (!session.quiet) {
    session.out.print("wrote {}: {} of metadata\n", ballast::display(written), counted(now.size(), "key"));
  }
  return kFine;
}

int run(Session& session, const MetaOptions& options) {
  ballast::Checkpoint checkpoint = session.open(options.file, {.io = ballast::Io::read});
  for (const std::string& note : checkpoint.notes) session.note(note);
  // As it stands in the file: an opened checkpoint has its ties as tensors, not as metadata.
  if (checkpoint.format->holds_metadata && !is_encrypted(checkpoint.path))
    checkpoint.metadata = ballast::safetensors::open(checkpoint.path, {.io = ballast::Io::read}).metadata;
  if (options.action.empty()) return list(session, options, checkpoint);
  return options.action == "get" ? get(session, options, checkpoint) : edit(session, options, checkpoint);
}

}  // namespace

void add_meta(CLI::App& app, Session& session) {
  auto options = std::make_shared<MetaOptions>();
  CLI::App& command =
      add_command(app, session, "meta", "list, read or change the metadata of a file",
                  "  ballast meta model.safetensors\n"
                  "  ballast meta model.safetensors get format\n"
                  "  ballast meta model.safetensors set license=apache-2.0 author='A. Turing'\n"
                  "  ballast meta model.safetensors rm author -o clean.safetensors");
  command
      .add_option("FILE", options->file,
                  "A checkpoint; changing it needs Safetensors: a file, or an index of shards")
      ->required();
  command.add_option("ACTION", options->action, "get, set or rm; without it everything is listed")
      ->check(CLI::IsMember({"get", "set", "rm"}));
  command.add_option("ARG", options->words, "KEY for get, KEY=VALUE... for set, KEY... for rm");
  command
      .add_option("-o,--output", options->out,
                  "Write a changed copy (default: FILE itself, replaced in one step)")
      ->type_name("OUT");
  command.add_flag("-f,--force", options->force,
                   "Overwrite OUT, and change keys by which tensors are tied, quantized or laid out");
  command.callback(
      [&session, options] { session.run = [&session, options] { return run(session, *options); }; });
}

}  // namespace tool
