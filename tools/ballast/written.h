// SPDX-License-Identifier: Apache-2.0
// What the commands that write checkpoints share: options, sizes as people write them, and what was written.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/io.h"
#include "json.h"
#include "progress.h"
#include "session.h"

namespace tool {

/// What --to takes.
[[nodiscard]] std::vector<std::string_view> names_of_formats();
/// --to
void add_format_option(CLI::App& command, ballast::Format& format);

/// --receipt, for commands that write one.
void add_receipt_option(CLI::App& command, std::string& path);

/// --meta, as it was given.
void add_meta_option(CLI::App& command, std::vector<std::string>& words);
void add_pack_option(CLI::App& command, std::string& name);
/// --recipient. One passphrase opens IN and closes OUT, where OUT is to be encrypted and not for somebody.
void add_recipient_option(CLI::App& command, std::vector<std::string>& recipients);
[[nodiscard]] std::string passphrase_for(const Session& session, const std::string& out,
                                         const std::vector<std::string>& recipients);
/// Pack::none for no name.
[[nodiscard]] ballast::Pack pack_of(const std::string& name);
/// {key: value} of KEY=VALUE; a value may hold '='. Errc::invalid_argument for a key that is empty, or there
/// twice.
[[nodiscard]] ballast::Metadata parse_meta(const std::vector<std::string>& words);

/// --no-check, for commands that copy what they read.
void add_no_check_option(CLI::App& command, bool& check);

/// "5GB" is 5,000,000,000, "500MiB" 524,288,000, "1.5kb" 1,500, "1234" bytes. `option` is for the message.
[[nodiscard]] std::uint64_t parse_size(const std::string& word, const std::string& option);

/// Before any work: throws when `path` is there and may not be overwritten, or is a folder.
void require_free(const std::string& path, bool force);
[[nodiscard]] std::uint64_t size_of_file(const std::string& path);
/// Of all files the checkpoint that was opened from `path` lies in: the index and the shards, the one model
/// of a folder.
[[nodiscard]] std::uint64_t size_of_files(const std::string& path, const ballast::Checkpoint& checkpoint);

struct Written {
  std::string file;  ///< the file, or the index
  std::uint64_t bytes = 0;
  std::vector<std::string> shards;

  /// "model.safetensors.index.json (7 shards)"
  [[nodiscard]] std::string text() const;
  /// Adds file, file_bytes and, when there are any, shards.
  void describe(Json& object) const;
};

/// The command's answer: `about` with "output" added, or one line.
void report_written(Session& session, Json about, const Written& written,
                    const ballast::Checkpoint& checkpoint, std::chrono::steady_clock::time_point start);

[[nodiscard]] Written written_shards(const ballast::SavedShards& saved);

}  // namespace tool
