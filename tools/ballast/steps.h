// SPDX-License-Identifier: Apache-2.0
// What convert does between opening and saving: the library's steps in their order, with the tool's words for
// options, and a cast that counts the values it could not hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/convert.h"
#include "selection.h"

namespace tool {

struct Steps {
  std::optional<std::string>
      root;  ///< keep what lies under this key, without the key; "" takes all; absent finds the state dict
  std::vector<std::string> rename;   ///< "RE=TO", in order; $1 and ${name} stand for groups
  std::string rules;                 ///< a rules file (docs/rules.md), after the renames
  std::vector<std::string> reindex;  ///< prefixes whose numbers become 0, 1, 2, …
  Selection selection;               ///< on the new names
  std::string dtype;                 ///< "f16", "bfloat16", …; floating tensors only; empty keeps

  /// The same in the library's words, but for the dtype, which may be any here.
  [[nodiscard]] ballast::ConvertOptions options() const;
};

struct StepsReport {
  std::string root;  ///< where the state dict was found by itself
  std::uint64_t renamed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t cast = 0;
  std::vector<std::string> idle;     ///< patterns that matched nothing
  std::vector<std::string> origins;  ///< for each tensor the key or keys it comes from
  /// Finite values that the narrower dtype cannot hold. Counted while the tensors are read, so complete only
  /// after the save.
  std::shared_ptr<std::atomic<std::uint64_t>> overflowed = std::make_shared<std::atomic<std::uint64_t>>(0);
};

[[nodiscard]] ballast::Checkpoint apply(const ballast::Checkpoint& checkpoint, const Steps& steps,
                                        StepsReport& report);

/// "f32", "F32" and "float32" → DType::f32; throws with the words that are known.
[[nodiscard]] ballast::DType parse_dtype(const std::string& word);

}  // namespace tool
