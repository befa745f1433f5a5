// SPDX-License-Identifier: Apache-2.0
// Other sizes for x [batch, channels, size…], as torch.nn.functional.interpolate computes them.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

enum class ResizeMode : std::uint8_t { nearest, linear, cubic };

struct ResizeArgs {
  Dims size = {};                  ///< one for each spatial dimension; or
  std::vector<double> scale = {};  ///< one factor for all, or one each
  ResizeMode mode =
      ResizeMode::nearest;  ///< linear: (bi-, tri-)linear by the number of dimensions; cubic: two only
  bool align_corners = false;
};

[[nodiscard]] Tensor resize(const Tensor& x, const ResizeArgs& args);

}  // namespace ballast

#pragma GCC visibility pop
