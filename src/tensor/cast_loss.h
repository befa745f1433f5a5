// SPDX-License-Identifier: Apache-2.0
// What a cast did to values: how many are another value now, how many are no number any more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ballast/tensor.h"

namespace ballast {

struct CastLoss {
  std::uint64_t rounded = 0;     ///< finite before and after, and not the same value
  std::uint64_t overflowed = 0;  ///< finite before, not after; beyond an integer's limits
};

/// `count` packed real elements before and after the cast.
[[nodiscard]] CastLoss cast_loss(DType from, const std::byte* before, DType to, const std::byte* after,
                                 std::uint64_t count);

/// All of a tensor, on several threads; both must be real and have one shape.
[[nodiscard]] CastLoss cast_loss(const Tensor& before, const Tensor& after);

}  // namespace ballast
