// SPDX-License-Identifier: Apache-2.0
// to_checkpoint() for those who must know where each tensor of the model went.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ballast/load.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// A slot's tensor in the checkpoint: part `part` of `parts` of that tensor's first dimension, transposed or
/// not. For Adapter::pytorch and Adapter::none.
struct SavedAs {
  std::string name = {};
  bool transposed = false;
  std::size_t part = 0;
  std::size_t parts = 1;
};

[[nodiscard]] Checkpoint save_and_tell(const Slots& slots, Adapter adapter, const ModelCast& cast,
                                       std::vector<SavedAs>& saved_as);

/// All tensors under all their names, and for each a slot it was made of.
[[nodiscard]] Checkpoint save_and_name(const Slots& slots, Adapter adapter,
                                       std::vector<const Slot*>& made_of);

}  // namespace ballast

#pragma GCC visibility pop
