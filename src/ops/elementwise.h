// SPDX-License-Identifier: Apache-2.0
// The machinery behind elementwise operations, for the other files of this room.
#pragma once

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/operand.h"
#include "ops/kernels.h"
#include "ops/operations.h"

namespace ballast::ops {

/// What an operation does with integers and BOOL.
enum class OnIntegers : std::uint8_t {
  to_float,  ///< computes them as F32
  keep,      ///< computes in I64, the result has their dtype
  refuse,
};

[[nodiscard]] Tensor unary(const char* op, Unary which, const Tensor& x, OnIntegers integers, double p = 0,
                           double q = 0);
/// With broadcasting and PyTorch's result dtype.
[[nodiscard]] Tensor arithmetic(const char* op, Binary which, const Operand& a, const Operand& b);
/// With broadcasting, to BOOL; `dtype` is what PyTorch promotes the operands to.
[[nodiscard]] Tensor comparison(const char* op, Compare which, const Operand& a, const Operand& b,
                                DType dtype);

template <Unary which, OnIntegers integers>
Tensor function_cpu(const Operation& op, const Tensor& x) {
  return unary(op.name, which, x, integers);
}

template <Binary which>
Tensor arithmetic_cpu(const Operation& op, const Operand& a, const Operand& b) {
  return arithmetic(op.name, which, a, b);
}

template <Compare which>
Tensor comparison_cpu(const Operation& op, const Operand& a, const Operand& b, DType dtype) {
  return comparison(op.name, which, a, b, dtype);
}

// Their rows.
template <Unary which, OnIntegers integers>
constexpr operations::Function function_row(const char* name) {
  return {operations::about(name, {"x"}, {}, forms::function), {function_cpu<which, integers>}};
}

template <Binary which>
constexpr operations::Arithmetic arithmetic_row(const char* name, FormRule form = forms::arithmetic) {
  return {operations::about(name, {"a", "b"}, {}, form), {arithmetic_cpu<which>}};
}

template <Compare which>
constexpr operations::Comparison comparison_row(const char* name) {
  return {operations::about(name, {"a", "b"}, {"dtype"}, forms::comparison), {comparison_cpu<which>}};
}

/// activation(a + b), each piece of it in one go; `memory`: that of an operand which may be written over.
[[nodiscard]] Tensor sum_cpu(const Operation& op, const Operand& a, const Operand& b, const Tensor* memory,
                             Activation activation);
/// On F32 memory that is the operation's own.
void unary_in_place(Unary which, Tensor& x, double p = 0, double q = 0);

/// Of values computed in F32, F64 or I64: what the kernels do, one at a time (elementwise_wide.cpp).
[[nodiscard]] double unary_value(Unary which, double x, double p, double q);
[[nodiscard]] std::int64_t unary_value(Unary which, std::int64_t x, double p, double q);
[[nodiscard]] double binary_value(Binary which, double a, double b);
[[nodiscard]] std::int64_t binary_value(Binary which, std::int64_t a, std::int64_t b);

/// I64 values as integers of `dtype`, the upper bits dropped as PyTorch's arithmetic does; as BOOL, what is
/// not zero.
[[nodiscard]] Tensor narrowed(const Tensor& wide, DType dtype);

}  // namespace ballast::ops
