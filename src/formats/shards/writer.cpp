// SPDX-License-Identifier: Apache-2.0
// A Checkpoint as shards: all of them written, then named, then the index.
#include "formats/safetensors/writer.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "ballast/error.h"
#include "ballast/safetensors.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/json_writer.h"
#include "checkpoint/file_options.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/require_sound.h"
#include "containers/confine.h"
#include "formats/encrypted.h"
#include "formats/one_reading.h"
#include "formats/safetensors/header.h"
#include "formats/shards/publication.h"
#include "formats/shards/shards.h"
#include "seal/age_cover.h"
#include "seal/age_source.h"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

bool names_folder(const std::string& path) {
  return shards::is_folder(path) || path.ends_with('/');
}

// "dir/model" of "dir/model.safetensors", "dir/model.safetensors.index.json" (both also encrypted) or "dir".
std::string stem_of(const std::string& path) {
  if (names_folder(path)) return (fs::path(path) / "model").string();
  const std::string plain = seal::inner_name(path);
  for (const std::string_view suffix : {kIndexSuffix, kSuffix}) {
    if (plain.ends_with(suffix) && plain.size() > suffix.size())
      return plain.substr(0, plain.size() - suffix.size());
  }
  fail(Errc::invalid_argument, display(path),
       "shards are Safetensors files: name a *.safetensors or a folder; a new folder is named with a slash, "
       "{}",
       quoted(path + "/"));
}

// What all files of a set end in: names of tensors stand in the index, so that it is encrypted, too.
std::string_view ending_of(bool encrypts) {
  return encrypts ? ".age" : "";
}

// In order, each shard as full as it goes; each says what is tied to its own tensors.
std::vector<Checkpoint> split(Checkpoint checkpoint, std::uint64_t limit) {
  const marks::Ties ties = marks::ties_of(checkpoint);
  if (checkpoint.metadata) {
    for (const auto& [name, of] : ties) checkpoint.metadata->erase(name);
    checkpoint.metadata->erase(marks::kTiesKey);
  }
  std::vector<Checkpoint> parts(1);
  std::uint64_t bytes = 0;
  for (const Entry& entry : checkpoint) {
    if (!parts.back().empty() && (entry.bytes > limit || bytes > limit - entry.bytes)) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().add(entry.name, entry.tensor());
    bytes += entry.bytes;
  }
  for (Checkpoint& part : parts) {
    part.metadata = checkpoint.metadata;
    marks::Ties own;
    for (const auto& [name, of] : ties) {
      if (part.contains(of)) own.emplace(name, of);
    }
    marks::set_ties(part, own);
  }
  return parts;
}

std::vector<std::string> names_of(const std::string& stem, std::size_t count, int generation,
                                  std::string_view ending) {
  std::vector<std::string> names;
  const std::string version = generation == 1 ? "" : fmt::format("-v{}", generation);
  for (std::size_t i = 1; i <= count; ++i)
    names.push_back(fmt::format("{}{}-{:05}-of-{:05}{}{}", stem, version, i, count, kSuffix, ending));
  return names;
}

bool any_exists(const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    std::error_code ignored;
    return fs::exists(fs::symlink_status(path, ignored));
  });
}

// Names nobody has yet, so that the shards the old index leads to stay what they are until it is replaced.
std::vector<std::string> free_names(const std::string& stem, std::size_t count, bool overwrite,
                                    std::string_view ending) {
  for (int generation = 1;; ++generation) {
    std::vector<std::string> names = names_of(stem, count, generation, ending);
    if (!overwrite || !any_exists(names)) return names;
  }
}

std::string index_text(const std::vector<Checkpoint>& parts, const std::vector<std::string>& files) {
  std::vector<std::pair<std::string_view, std::size_t>> map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    total += parts[i].total_bytes();
    for (const Entry& entry : parts[i]) map.emplace_back(entry.name, i);
  }
  std::sort(map.begin(), map.end());
  // Laid out as Hugging Face's libraries do it.
  std::string text = fmt::format("{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n", total);
  text += "  \"weight_map\": {";
  for (std::size_t i = 0; i < map.size(); ++i) {
    text += i == 0 ? "\n    " : ",\n    ";
    append_json_string(text, map[i].first);
    text += ": ";
    append_json_string(text, fs::path(files[map[i].second]).filename().string());
  }
  text += map.empty() ? "}\n}\n" : "\n  }\n}\n";
  return text;
}

// The set that is in place, as far as it is named as we name shards: nothing else is ever removed. What a
// broken index led to is told by those names.
std::vector<std::string> old_files(const std::string& stem, const std::string& index) {
  std::error_code ignored;
  if (!fs::exists(index, ignored)) return {};
  const fs::path folder = containers::folder_of(index);
  std::vector<std::string> names;
  try {
    names = shards::read_index(index).files;
  } catch (const Error&) {
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      names.push_back(entry.path().filename().string());
  }
  const std::string base = fs::path(stem).filename().string();
  std::vector<std::string> old;
  for (const std::string& name : names) {
    if (shards::is_shard_of(base, index, name)) old.push_back((folder / name).string());
  }
  return old;
}

// Progress of one shard as progress of all.
Progress shifted(const Progress& progress, std::uint64_t before, std::uint64_t total) {
  if (!progress) return {};
  return [&progress, before, total](std::uint64_t done, std::uint64_t) { progress(before + done, total); };
}

}  // namespace

bool shards::is_shard_of(std::string_view base, std::string_view index, std::string_view file) {
  if (is_encrypted_name(index) != is_encrypted_name(file)) return false;
  if (is_encrypted_name(file)) file.remove_suffix(ending_of(true).size());
  const auto skip_digits = [&](std::size_t least) {
    const std::size_t count = std::min(file.find_first_not_of("0123456789"), file.size());
    file.remove_prefix(count);
    return count >= least;
  };
  const auto skip = [&](std::string_view text) {
    if (!file.starts_with(text)) return false;
    file.remove_prefix(text.size());
    return true;
  };
  if (!skip(base)) return false;
  if (skip("-v") && !skip_digits(1)) return false;
  return skip("-") && skip_digits(5) && skip("-of-") && skip_digits(5) && file == kSuffix;
}

std::vector<std::string> shards_in_place(const std::string& path, bool encrypts) {
  const std::string stem = stem_of(path);
  const std::string index = fmt::format("{}{}{}", stem, kIndexSuffix, ending_of(encrypts));
  if (path.ends_with('/') && !shards::is_folder(path)) return {};
  std::vector<std::string> files = old_files(stem, index);
  files.push_back(index);
  return files;
}

SavedShards save_shards(const Checkpoint& in, const std::string& path, const SaveOptions& options) {
  require_known(options, "save_shards()",
                {"format", "meta", "shard_bytes", "check", "pack", "recipients", "passphrase_file"});
  const bool encrypts = !options.recipients.empty() || !options.passphrase_file.empty();
  if (!names_folder(path)) require_encryption_said(path, encrypts);
  const std::string stem = stem_of(path);
  if (options.format && options.format != formats::safetensors)
    fail(Errc::unsupported, display(path), "shards are Safetensors files, not {}", options.format.name());
  const std::uint64_t most = options.shard_bytes == 0 ? kShardBytes : options.shard_bytes;
  Checkpoint marked = record::without_record_metadata(in);
  layout::state_for_safetensors(marked, layout::of(in));
  marks::add_metadata(marked, formats::safetensors, options.meta, display(path));
  safetensors::require_none_of_storage(marked.metadata, display(path));
  const Checkpoint checkpoint = marks::without_ties(std::move(marked));
  const std::vector<Checkpoint> parts = split(checkpoint, most);
  if (parts.size() > shards::kMaxShards)
    fail(Errc::too_many, display(path), "{} shards of {} bytes, at most {} are written", parts.size(), most,
         shards::kMaxShards);
  const std::string index_path = fmt::format("{}{}{}", stem, kIndexSuffix, ending_of(encrypts));
  if (options.check) require_sound(checkpoint);
  shards::recover(stem, index_path);
  SavedShards saved{.index = index_path,
                    .files = free_names(stem, parts.size(), options.overwrite, ending_of(encrypts))};
  const std::vector<std::string> old = old_files(stem, saved.index);
  // Before the files in it, so that it goes after them when something fails.
  std::optional<NewFolder> folder;
  if (path.ends_with('/')) folder.emplace(path);
  // Of what is written here and of nothing else: the journal of the names is plain.
  std::optional<CoverScope> scope;
  if (encrypts) scope.emplace([&] { return seal::age_cover(options.recipients, options.passphrase_file); });
  // First the index: that it may not be overwritten is known before the work.
  AtomicFile index(saved.index, options.overwrite, FileMode::usual, Links::replace);
  std::vector<std::unique_ptr<AtomicFile>> files;
  const std::uint64_t total = checkpoint.total_bytes();
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    files.push_back(std::make_unique<AtomicFile>(saved.files[i], false, FileMode::usual, Links::replace));
    safetensors::write_file(parts[i], *files.back(), shifted(options.progress, before, total), options.pack);
    files.back()->seal();
    before += parts[i].total_bytes();
  }
  index.append(index_text(parts, saved.files));
  require_one_reading(index, Meant::none);
  index.seal();
  scope.reset();
  shards::publish({.index = saved.index, .fresh = saved.files, .old = old}, files, index);
  if (folder) folder->keep();
  return saved;
}

}  // namespace ballast
