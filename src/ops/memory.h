// SPDX-License-Identifier: Apache-2.0
// Memory for results. A model makes and drops the same sizes over and over; fresh pages for each cost time,
// so blocks that results give back serve the next ones.
#pragma once

#include "ballast/tensor.h"

namespace ballast::ops {

/// Row-major, not initialised.
[[nodiscard]] Tensor new_tensor(DType dtype, const Shape& shape);

[[nodiscard]] inline Tensor new_floats(const Shape& shape) {
  return new_tensor(DType::f32, shape);
}

/// Whether it is such memory, which no caller of ours can have an address of once its last tensor is gone.
[[nodiscard]] bool is_from_pool(const Storage& storage);

}  // namespace ballast::ops
