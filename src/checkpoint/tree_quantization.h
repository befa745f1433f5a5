// SPDX-License-Identifier: Apache-2.0
// PyTorch's quantized tensors: a checkpoint's entries are their integers, and what those stand for is in the
// tree.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/value.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

class TreeQuantization {
 public:
  explicit TreeQuantization(const Checkpoint& checkpoint);

  /// The tensor as the tree knows it; null when it is not quantized, or not as it lies in the tree any more.
  [[nodiscard]] const TensorValue* find(const Tensor& tensor) const;

 private:
  std::map<std::pair<const Storage*, std::uint64_t>, std::vector<TensorValue>> by_place_;
};

/// The same with the numbers (F32, computed when they are read) in place of such integers.
[[nodiscard]] Checkpoint with_numbers_of_tree(const Checkpoint& in);

}  // namespace ballast

#pragma GCC visibility pop
