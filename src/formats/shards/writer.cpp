// SPDX-License-Identifier: Apache-2.0
// A Checkpoint as shards: all of them written, then named, then the index.
#include "formats/safetensors/writer.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "ballast/display.h"
#include "ballast/safetensors.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/json_writer.h"
#include "checkpoint/record_metadata.h"
#include "formats/confine.h"
#include "formats/shards/shards.h"

namespace ballast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

// "dir/model" of "dir/model.safetensors", "dir/model.safetensors.index.json" or "dir".
std::string stem_of(const std::string& path) {
  if (shards::is_folder(path) || path.ends_with('/')) return (fs::path(path) / "model").string();
  for (const std::string_view suffix : {kIndexSuffix, kSuffix}) {
    if (path.ends_with(suffix) && path.size() > suffix.size())
      return path.substr(0, path.size() - suffix.size());
  }
  fail(Errc::invalid_argument, display(path),
       "shards are Safetensors files: name a *.safetensors or a folder");
}

// In order, each shard as full as it goes.
std::vector<Checkpoint> split(const Checkpoint& checkpoint, std::uint64_t limit) {
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
  for (Checkpoint& part : parts) part.metadata = checkpoint.metadata;
  return parts;
}

std::vector<std::string> names_of(const std::string& stem, std::size_t count, int generation) {
  std::vector<std::string> names;
  const std::string version = generation == 1 ? "" : fmt::format("-v{}", generation);
  for (std::size_t i = 1; i <= count; ++i)
    names.push_back(fmt::format("{}{}-{:05}-of-{:05}{}", stem, version, i, count, kSuffix));
  return names;
}

bool any_exists(const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    std::error_code ignored;
    return fs::exists(fs::symlink_status(path, ignored));
  });
}

// Names nobody has yet, so that the shards the old index leads to stay what they are until it is replaced.
std::vector<std::string> free_names(const std::string& stem, std::size_t count, bool overwrite) {
  for (int generation = 1;; ++generation) {
    std::vector<std::string> names = names_of(stem, count, generation);
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

// What the index in place leads to, as far as it was written by us: nothing else is ever removed.
std::vector<std::string> old_files(const std::string& stem, const std::string& index) {
  std::vector<std::string> old;
  std::error_code ignored;
  if (!fs::exists(index, ignored)) return old;
  const std::string base = fs::path(stem).filename().string();
  try {
    for (const std::string& file : shards::read_index(index).files) {
      const bool is_ours = file.find('/') == std::string::npos && file.starts_with(base + "-") &&
                           file.find("-of-") != std::string::npos && file.ends_with(kSuffix);
      if (is_ours) old.push_back((fs::path(folder_of(index)) / file).string());
    }
  } catch (const Error&) {  // broken: replaced, and its shards left alone
  }
  return old;
}

// Progress of one shard as progress of all.
Progress shifted(const Progress& progress, std::uint64_t before, std::uint64_t total) {
  if (!progress) return {};
  return [&progress, before, total](std::uint64_t done, std::uint64_t) { progress(before + done, total); };
}

class Publication {
 public:
  explicit Publication(std::vector<std::unique_ptr<AtomicFile>> files) : files_(std::move(files)) {}

  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  /// All names, or none: those given already are taken back when a later one fails. With the index in place
  /// the new shards are the valid ones, and stay.
  void run() {
    try {
      for (const auto& file : files_) file->commit();
    } catch (...) {
      for (const auto& file : files_) {
        std::error_code ignored;
        if (file->has_final_name() && !files_.back()->has_final_name()) fs::remove(file->path(), ignored);
      }
      throw;
    }
  }

 private:
  std::vector<std::unique_ptr<AtomicFile>> files_;  // the index is the last
};

}  // namespace

SavedShards save_shards(const Checkpoint& in, const std::string& path, const ShardOptions& options) {
  const Checkpoint checkpoint = record::without_record_metadata(in);
  const std::string stem = stem_of(path);
  if (options.shard_bytes == 0) fail(Errc::invalid_argument, display(path), "shards of 0 bytes");
  const std::vector<Checkpoint> parts = split(checkpoint, options.shard_bytes);
  if (parts.size() > shards::kMaxShards)
    fail(Errc::too_many, display(path), "{} shards of {} bytes, at most {} are written", parts.size(),
         options.shard_bytes, shards::kMaxShards);
  SavedShards saved{.index = stem + std::string(kIndexSuffix),
                    .files = free_names(stem, parts.size(), options.overwrite)};
  const std::vector<std::string> old = old_files(stem, saved.index);
  // Before the files in it, so that it goes after them when something fails.
  std::optional<NewFolder> folder;
  if (path.ends_with('/')) folder.emplace(path);
  // First the index: that it may not be overwritten is known before the work.
  auto index = std::make_unique<AtomicFile>(saved.index, options.overwrite);
  std::vector<std::unique_ptr<AtomicFile>> files;
  const std::uint64_t total = checkpoint.total_bytes();
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    files.push_back(std::make_unique<AtomicFile>(saved.files[i], false));
    safetensors::write_file(parts[i], *files.back(), shifted(options.progress, before, total));
    files.back()->seal();
    before += parts[i].total_bytes();
  }
  index->append(index_text(parts, saved.files));
  index->seal();
  files.push_back(std::move(index));
  Publication(std::move(files)).run();
  if (folder) folder->keep();
  for (const std::string& file : old) {
    std::error_code ignored;
    if (std::find(saved.files.begin(), saved.files.end(), file) == saved.files.end())
      fs::remove(file, ignored);
  }
  return saved;
}

}  // namespace ballast
