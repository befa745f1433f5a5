// SPDX-License-Identifier: Apache-2.0
// Checkpoints in several files: an index that says which tensor lies in which file, or a folder with one in
// it. docs/formats/shards.md has the rules.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ballast/io.h"

namespace ballast::shards {

/// What an index says, checked by itself; no shard is looked at.
struct Index {
  std::vector<std::string> files;                          ///< names as in the index, each once, sorted
  std::vector<std::pair<std::string, std::uint32_t>> map;  ///< tensor → position in `files`; sorted by tensor
  Metadata texts;                ///< of its metadata what is text: second names of tied tensors
  std::uint64_t total_size = 0;  ///< as it says; 0 when it says nothing
};

inline constexpr std::uint64_t kMaxIndexBytes = 100'000'000;
inline constexpr std::size_t kMaxShards = 10'000;

/// Errc::bad_json, duplicate_key, path_escape, too_many. Changes `text`.
[[nodiscard]] Index parse_index(std::string text, const std::string& where);
[[nodiscard]] Index read_index(const ByteSource& content);
/// Of a file, which may be encrypted.
[[nodiscard]] Index read_index(const std::string& path);

/// Where a shard of an index in `folder` lies: confined() to it, and under a plain name. Errc::missing_shard
/// is for the caller: empty when there is no such file.
[[nodiscard]] std::string locate(const std::string& folder, const std::string& file);

/// All shards of the index at `path`, in the order of its files. Errc::missing_shard with a list;
/// Errc::duplicate_key when two of its names lead to one file.
[[nodiscard]] std::vector<std::string> locate_all(const std::string& path, const Index& index);

/// "model-00001-of-00002.safetensors" or "model-v2-00001-of-00002.safetensors" of "model": what we name
/// shards. Those of an encrypted index (".age") end so, too, and belong to no other.
[[nodiscard]] bool is_shard_of(std::string_view base, std::string_view index, std::string_view file);

[[nodiscard]] bool is_encrypted_name(std::string_view path) noexcept;

[[nodiscard]] bool is_folder(const std::string& path) noexcept;
/// The names of its regular files, in order.
[[nodiscard]] std::vector<std::string> files_in(const std::string& folder);

struct FoundInFolder {
  std::string path;
  std::vector<std::string> beside;  ///< files of the training, by their names, which were not taken
};

/// The one index, or the one file, of a folder; a file of the training (optimizer.pt) only where there is no
/// other. Errc::file_not_found, Errc::invalid_argument with a list.
[[nodiscard]] FoundInFolder find_in_folder(const std::string& folder);

/// `content`: of the index at `path`.
[[nodiscard]] Checkpoint open_index(const std::string& path, const ByteSource& content,
                                    const OpenOptions& options);
[[nodiscard]] Checkpoint open_folder(const std::string& path, const OpenOptions& options);

}  // namespace ballast::shards
