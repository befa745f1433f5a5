// SPDX-License-Identifier: Apache-2.0
// The library's steps (root → rules → rename → filter → cast) as convert's options name them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "selection.h"

namespace tool {

struct Steps {
  std::string root;                 ///< take what lies under this key; empty: the state dict is found by itself; ".": everything
  std::string rules;                ///< a file of rules (docs/rules.md)
  std::vector<std::string> rename;  ///< "RE=TO", in order; $1 and ${name} stand for groups
  Selection selection;              ///< on the new names
  std::string dtype;                ///< "f16", "bfloat16", …; floating tensors only; empty keeps
};

struct Stepped {
  ballast::Checkpoint checkpoint;
  std::vector<std::string> origins;  ///< for each tensor the key it comes from
  std::uint64_t renamed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t cast = 0;
  std::vector<std::string> notes;     ///< worth saying
  std::vector<std::string> warnings;  ///< rules that did nothing
  /// Finite values that the narrower dtype cannot hold. Counted while tensors are read, so complete only after the save.
  std::shared_ptr<std::atomic<std::uint64_t>> overflowed = std::make_shared<std::atomic<std::uint64_t>>(0);
};

[[nodiscard]] Stepped apply(const ballast::Checkpoint& checkpoint, const Steps& steps);

/// "f32", "F32" and "float32" → DType::f32; throws with the words that are known.
[[nodiscard]] ballast::DType parse_dtype(const std::string& word);

}  // namespace tool
