// SPDX-License-Identifier: Apache-2.0
// Products of f32 matrices with any strides.
#pragma once

#include <cstdint>

#include "ballast/tensor.h"

namespace ballast::ops {

/// Multiplications up to which preparing a call of oneDNN costs more than it gains.
inline constexpr std::int64_t kSmallProduct = std::int64_t{16} << 10U;

struct Matrix {
  const float* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

/// The last two dimensions of an f32 tensor, `offset` elements after its first.
[[nodiscard]] Matrix matrix_of(const Tensor& x, std::int64_t offset = 0);

/// c [a.rows, b.columns] = alpha * a b + beta * c. Uses several threads unless called from a parallel piece.
void gemm(const Matrix& a, const Matrix& b, float* c, std::int64_t c_stride, float alpha = 1, float beta = 0);

}  // namespace ballast::ops
