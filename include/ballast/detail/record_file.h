// SPDX-License-Identifier: Apache-2.0
// Ballast records as files: Safetensors files with everything aligned, a checksum for each tensor, and a few
// words about themselves in the metadata. docs/formats/record.md is their specification. record.h has the
// same for models. Part of ballast::core.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; as safetensors::open() and safetensors::save(), and what the functions say. Owns:
// what is opened keeps its file as long as a tensor of it lives; bytes that are given must live as long
// themselves. Threads: every function may be called from several at once, writers for different paths. Costs:
// reading takes what the header takes, writing one pass for the checksums and one for the file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/detail/file_options.h"
#include "ballast/runtime.h"
#include "ballast/safetensors.h"

#pragma GCC visibility push(default)

namespace ballast {

/// The tensors as they are, under the names they have; the layout, the precision and the configuration are
/// what the checkpoint's metadata says they are (docs/formats/record.md). Atomic, and memory stays flat. Of
/// the options it knows pack. Refuses what safetensors::save() refuses; damaged ties in the metadata are
/// Errc::bad_json, bad_utf8, duplicate_key, too_many.
void save_record(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});

/// A mapped record. Errc::unknown_format when the file is a Safetensors file and no record,
/// Errc::unsupported when it is of a version that is not known yet.
[[nodiscard]] Checkpoint open_record(const std::string& path, const OpenOptions& options = {});
/// A record that lies in memory for as long as the program runs: one linked into it.
[[nodiscard]] Checkpoint open_record(std::span<const std::byte> bytes, const OpenOptions& options = {});

/// A tensor whose bytes are not what the checksum says, or that has none.
struct RecordFault {
  std::string name;          ///< of the tensor
  bool has_checksum = true;  ///< false: there is none to compare with
  std::string expected;      ///< what the file says: 16 hexadecimal digits
  std::string found;         ///< what its bytes give
};

/// Compares all checksums, on several threads, which reads every byte; empty when everything is as it was
/// written. Errc::bad_json, bad_utf8, duplicate_key and too_many for checksums and ties that the metadata has
/// damaged, unsupported for a version that is not known here.
[[nodiscard]] std::vector<RecordFault> check_record(const Checkpoint& checkpoint,
                                                    const Progress& progress = {});

/// The configuration in it. Errc::not_found when there is none, bad_json, bad_utf8 and duplicate_key
/// when it is no JSON.
[[nodiscard]] Value record_config_value(const Checkpoint& checkpoint);

}  // namespace ballast

#pragma GCC visibility pop
