// SPDX-License-Identifier: Apache-2.0
// Bytes brought into memory: copied there by several threads, or mapped pages made present. Nothing of Python
// here.
#pragma once

#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/runtime.h"

namespace py {

/// New memory that may be written. Reads no more of a file than the tensor needs, and keeps nothing else.
[[nodiscard]] ballast::Tensor copy_of(const ballast::Tensor& tensor);

/// The same tensors, each in memory of its own that may be written and goes with it (ballast::in_memory() has
/// one piece for all); tied ones stay tied.
[[nodiscard]] ballast::Checkpoint with_own_memory(const ballast::Checkpoint& checkpoint,
                                                  const ballast::Progress& progress = {});

/// Makes the mapped pages of all tensors present, so that reading them costs no more faults.
void bring_in(const ballast::Checkpoint& checkpoint, const ballast::Progress& progress = {});

struct ByteCopy {
  std::byte* target;
  const std::byte* source;
  std::uint64_t size;
};

/// All of them, by several threads.
void copy_bytes(const std::vector<ByteCopy>& copies);

}  // namespace py
