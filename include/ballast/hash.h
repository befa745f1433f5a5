// SPDX-License-Identifier: Apache-2.0
// What a checkpoint holds, as SHA-256: one for each tensor over its name, dtype, shape and values, and a root
// over all of them that depends on nothing else: not on the format, the order, the shards, the strides.
// docs/proof.md has the bytes. Part of ballast::import.
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
  std::string name;
  std::string dtype;  ///< Safetensors' code
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::string sha256;
  friend bool operator==(const TensorHash&, const TensorHash&) = default;
};

struct Manifest {
  std::string root;
  std::vector<TensorHash> tensors;  ///< by name, in the order of its bytes
};

/// Reads every byte, as many tensors at a time as there are threads, in a few hundred kilobytes of memory.
/// Tied tensors that the metadata gives second names count under each. Errc::not_representable when a tensor
/// has no data.
[[nodiscard]] Manifest hash(const Checkpoint& checkpoint, const Progress& progress = {});

/// SHA-256 of a whole file, as sha256sum has it.
[[nodiscard]] std::string hash_file(const std::string& path, const Progress& progress = {});

}  // namespace ballast

#pragma GCC visibility pop
