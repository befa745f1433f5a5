// SPDX-License-Identifier: Apache-2.0
// Stand-in for the library's steps (root → rename → filter → cast) until include/ballast/steps.h is there.
// convert.cpp uses nothing but what this header declares, so replacing it touches one file.
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
  std::string root;                 ///< keep what lies under this key, without the key
  std::vector<std::string> rename;  ///< "RE=TO", in order; $1 and ${name} stand for groups
  Selection selection;              ///< on the new names
  std::string dtype;                ///< "f16", "bfloat16", …; floating tensors only; empty keeps
};

struct StepsReport {
  std::uint64_t renamed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t cast = 0;
  std::vector<std::string> notes;
  /// Finite values that the narrower dtype cannot hold. Counted while the tensors are read, so complete only
  /// after the save.
  std::shared_ptr<std::atomic<std::uint64_t>> overflowed = std::make_shared<std::atomic<std::uint64_t>>(0);
};

[[nodiscard]] ballast::Checkpoint apply(ballast::Checkpoint checkpoint, const Steps& steps,
                                        StepsReport& report);

/// "f32", "F32" and "float32" → DType::f32; throws with the words that are known.
[[nodiscard]] ballast::DType parse_dtype(const std::string& word);

}  // namespace tool
