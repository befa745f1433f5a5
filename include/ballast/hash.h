// SPDX-License-Identifier: Apache-2.0
// What a checkpoint holds, as SHA-256: one for each tensor over its name, dtype, shape and values, and a root
// over all of them that depends on nothing else: not on the format, the order, the shards, the strides.
// docs/proof.md has the bytes. Part of ballast::import.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error; and what the
// functions say. Owns: results are values. Threads: every function may be called from several at once; each
// works on all threads of runtime.h. Costs: every byte is read once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/runtime.h"

#pragma GCC visibility push(default)

namespace ballast {

/// All hashes are 64 hexadecimal digits.
struct TensorHash {
  std::string name;                 ///< of the tensor
  std::string dtype;                ///< Safetensors' code
  std::vector<std::int64_t> shape;  ///< as listed
  std::uint64_t bytes = 0;          ///< of the row-major form
  std::string sha256;               ///< of name, dtype, shape and values (docs/proof.md)
  friend bool operator==(const TensorHash&, const TensorHash&) = default;
};

/// The hashes of a checkpoint's tensors.
struct Manifest {
  std::string root;                 ///< of all of them: equal roots, equal tensors
  std::vector<TensorHash> tensors;  ///< by name, in the order of its bytes
};

/// Reads every byte, as many tensors at a time as there are threads, in a few hundred kilobytes of memory.
/// Tied tensors that the metadata gives second names count under each. Errc::not_representable when a tensor
/// has no data, unsupported when it lies on another device; bad_json, bad_utf8, duplicate_key and too_many
/// for damaged ties in the metadata (Metadata); file_changed when a file was written to since it was opened,
/// and what reading throws.
[[nodiscard]] Manifest hash(const Checkpoint& checkpoint, const Progress& progress = {});

/// SHA-256 of a whole file, as sha256sum has it. Errc::file_not_found, permission_denied, io_error.
[[nodiscard]] std::string hash_file(const std::string& path, const Progress& progress = {});

}  // namespace ballast

#pragma GCC visibility pop
