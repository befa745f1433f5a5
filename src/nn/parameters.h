// SPDX-License-Identifier: Apache-2.0
// What layers share: shape-only tensors, and sizes that make sense.
#pragma once

#include <cstdint>

#include "ballast/detail/nn/size.h"
#include "ballast/tensor.h"
#include "base/fail.h"

namespace ballast::nn {

inline Tensor parameter(Shape shape) {
  return {DType::f32, std::move(shape)};
}

inline void require_positive(const char* layer, const char* what, std::int64_t value) {
  if (value < 1) fail(Errc::invalid_argument, layer, "{} is {}, it must be at least 1", what, value);
}

template <std::size_t N>
Dims dims_of(const Size<N>& size) {
  return ShapeView(size.values);
}

}  // namespace ballast::nn
