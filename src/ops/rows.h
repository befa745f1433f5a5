// SPDX-License-Identifier: Apache-2.0
// A tensor as rows: the dimensions an operation works along brought to the end.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/tensor.h"

namespace ballast::ops {

/// [count, length], dense, in the dtype of the computation (F32, F64 or I64).
struct Rows {
  Tensor values;
  std::int64_t count;
  std::int64_t length;
  Shape kept;     ///< shape of one value for each row, without the dimensions
  Shape keepdim;  ///< the same with them, of size 1

  [[nodiscard]] const Shape& result(bool keep) const { return keep ? keepdim : kept; }
};

/// Which dimensions of x `dims` names; empty: all of them.
[[nodiscard]] std::vector<bool> reduced_axes(const char* op, const Tensor& x, const Dims& dims);

/// `dims` empty: all of them.
[[nodiscard]] Rows rows_along(const char* op, const Tensor& x, const Dims& dims, DType compute);

/// Several results for each row, [count, length], put back where the dimension `dim` of `like` was.
[[nodiscard]] Tensor back_in_place(const Tensor& rows, const Tensor& like, std::size_t axis);

/// How many rows of `length` one thread should take, at least.
[[nodiscard]] constexpr std::int64_t rows_per_thread(std::int64_t length) {
  return length >= 16384 ? 1 : 16384 / (length + 1) + 1;
}

}  // namespace ballast::ops
