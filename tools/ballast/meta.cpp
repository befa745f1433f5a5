// SPDX-License-Identifier: Apache-2.0
// ballast meta: the string metadata of a file: list, get, set, remove. Editing writes another header, in
// place where there is room; else the data is copied by the kernel and is the same to the byte.
#include <fstream>

#include "ballast/convert.h"
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
  std::string receipt;
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

bool is_encrypted(const std::string& path) {
  constexpr std::string_view kAge = "age-encryption.org/";
  std::string first(kAge.size(), '\0');
  std::ifstream(path, std::ios::binary).read(first.data(), static_cast<std::streamsize>(first.size()));
  return first == kAge;
}

ballast::MetadataEdit change_of(const MetaOptions& options) {
  if (options.words.empty()) refuse(options.action == "set" ? "set takes KEY=VALUE..." : "rm takes KEY...");
  ballast::MetadataEdit change{
      .marks = options.force, .receipt = options.receipt, .overwrite = options.force};
  for (const std::string& word : options.words) {
    const std::size_t equals = word.find('=');
    if (options.action == "rm") {
      change.remove.push_back(word);
      continue;
    }
    if (equals == std::string::npos || equals == 0)
      refuse(fmt::format("{} is not KEY=VALUE", ballast::quoted(word)));
    change.set[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return change;
}

int edit(Session& session, const MetaOptions& options, const ballast::Checkpoint& checkpoint) {
  ballast::MetadataEdit change = change_of(options);
  if (!options.out.empty() && checkpoint.format != ballast::formats::sharded)
    require_free(options.out, options.force);
  const std::string written = options.out.empty() ? options.file : options.out;
  const ballast::EditedMetadata done = [&] {
    ProgressBar bar = session.progress("write", written);
    change.progress = bar.callback();
    return ballast::edit_metadata(options.file, options.out, change);
  }();
  if (session.json) {
    JsonStream json(session.out);
    json.begin_object().member("schema", 1).member("file", written).member("in_place", done.in_place);
    write_metadata(json.key("metadata"), done.metadata);
    json.finish();
  } else if (!session.quiet) {
    session.out.print("wrote {}: {} of metadata{}\n", ballast::display(written),
                      counted(done.metadata.size(), "key"), done.in_place ? ", in place" : "");
  }
  return kFine;
}

int run(Session& session, const MetaOptions& options) {
  ballast::Checkpoint checkpoint = session.open(options.file, {.io = ballast::Io::read});
  for (const std::string& note : checkpoint.notes) session.note(note);
  // As it stands in the file: an opened checkpoint has its ties as tensors, not as metadata.
  if (checkpoint.format->holds_metadata && !is_encrypted(checkpoint.path)) {
    try {
      checkpoint.metadata = ballast::safetensors::open(checkpoint.path, {.io = ballast::Io::read}).metadata;
    } catch (const ballast::Error& error) {
      if (error.code() != ballast::Errc::cannot_decrypt)
        throw;  // of CryptoTensors': what was decrypted counts
    }
  }
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
                  "Write a changed copy, of shards into a folder (default: FILE itself, in one step)")
      ->type_name("OUT");
  add_receipt_option(command, options->receipt);
  command.add_flag(
      "-f,--force", options->force,
      "Overwrite OUT and the receipt, and change keys by which tensors are tied, quantized or laid out");
  command.callback(
      [&session, options] { session.run = [&session, options] { return run(session, *options); }; });
}

}  // namespace tool
