// SPDX-License-Identifier: Apache-2.0
// What the operations on tensors have in common.
//
// Dtypes: results have the dtype PyTorch gives them (F16 + F32 is F32, I64 / I64 is F32, a number never
// widens a tensor of its kind). F16 and BF16 are computed in F32 and rounded once at the end. F64 is computed
// in F64 by elementwise operations, reductions and movement; the operations of layers (matmul, convolutions,
// norms, …) compute in F32 and refuse F64. BOOL, U8, I8, I16, I32, I64 where they make sense. Shapes: NumPy's
// broadcasting. Results are row-major. NaN and infinities flow as they do in PyTorch. Refusals:
// Errc::shape_mismatch, bad_dtype, invalid_argument, offset_out_of_range (an index); where() names the
// operation. Threads: ballast::set_thread_count. Every function may be called from several threads at once.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "ballast/tensor.h"

namespace ballast {

/// A tensor or a number.
class Operand {
 public:
  Operand(Tensor tensor) : tensor_(std::move(tensor)) {}  // add(x, y)
  template <class Number>
  requires std::is_arithmetic_v<Number> Operand(Number number);  // add(x, 2)

  [[nodiscard]] const Tensor& tensor() const noexcept {
    return tensor_;
  }  ///< of a number: a tensor without dimensions

  [[nodiscard]] bool is_number() const noexcept { return is_number_; }

 private:
  static Tensor wrap(double value);
  static Tensor wrap(std::int64_t value);
  static Tensor wrap(bool value);

  Tensor tensor_;
  bool is_number_ = false;
};

template <class Number>

requires std::is_arithmetic_v<Number> Operand::Operand(Number number) : is_number_(true) {
  if constexpr (std::is_same_v<Number, bool>) {
    tensor_ = wrap(number);
  } else if constexpr (std::is_floating_point_v<Number>) {
    tensor_ = wrap(static_cast<double>(number));
  } else {
    tensor_ = wrap(static_cast<std::int64_t>(number));
  }
}

}  // namespace ballast
