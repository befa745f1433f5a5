// SPDX-License-Identifier: Apache-2.0
// What the steps share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ballast/steps.h"

namespace ballast {

/// Everything of `in` but its tensors.
[[nodiscard]] Checkpoint without_tensors(const Checkpoint& in);

/// The tensors of `in` under `names`, one for each. Errc::duplicate_key, naming the two old keys, when two
/// are the same.
[[nodiscard]] Checkpoint with_names(const Checkpoint& in, const std::vector<std::string>& names);

/// Where a path's segment is a number, and what stands before it.
struct NumberedSegment {
  std::string_view prefix;  ///< "layers."
  std::string_view number;
};

[[nodiscard]] std::vector<NumberedSegment> numbered_segments(std::string_view key);

/// cast() for the tensors whose position `wanted` says yes to.
[[nodiscard]] Checkpoint cast_where(const Checkpoint& in, DType dtype,
                                    const std::function<bool(std::size_t)>& wanted,
                                    const std::shared_ptr<CastCount>& count);

/// F32 for full and so on; keep and as_model have none.
[[nodiscard]] DType dtype_of_precision(Precision precision);

}  // namespace ballast
