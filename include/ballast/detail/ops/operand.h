// SPDX-License-Identifier: Apache-2.0
// Operand: what operations take, a tensor or a number. What they all have in common stands in ops.h.
//
// Throws: nothing but std::bad_alloc.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

/// A tensor or a number.
class Operand {
 public:
  /// A tensor.
  Operand(Tensor tensor) : tensor_(std::move(tensor)) {}  // add(x, y)
  /// A number: true and false are BOOL, other whole ones I64, fractions F64 that widen nothing.
  template <class Number>
  requires std::is_arithmetic_v<Number> Operand(Number number);  // add(x, 2)

  /// Of a number a tensor without dimensions; valid as long as the operand.
  [[nodiscard]] const Tensor& tensor() const noexcept { return tensor_; }

  /// Whether it was made from a number.
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

#pragma GCC visibility pop
