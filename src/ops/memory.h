// SPDX-License-Identifier: Apache-2.0
// Memory for results, from the pool of what earlier ones gave back.
#pragma once

#include "ballast/tensor.h"
#include "tensor/pool.h"

namespace ballast::ops {

/// Row-major, not initialised.
[[nodiscard]] inline Tensor new_tensor(DType dtype, const Shape& shape) {
  const Tensor form(dtype, shape);  // checks the shape
  return Tensor::contiguous_view(dtype, shape, pooled_storage(form.size_bytes(), Pooled::result));
}

[[nodiscard]] inline Tensor new_floats(const Shape& shape) {
  return new_tensor(DType::f32, shape);
}

}  // namespace ballast::ops
