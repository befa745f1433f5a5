// SPDX-License-Identifier: Apache-2.0
// Element by element, with broadcasting.
//
// Takes tensors and numbers. Gives: the shape that the operands are broadcast to, in the dtype PyTorch gives
// them (ops.h); BOOL for comparisons, logic and tests; those in place `a` itself. Throws:
// Errc::shape_mismatch for shapes that cannot be broadcast together; bad_dtype for dtypes that are not
// computed with (BOOL where PyTorch has none of it, lerp() and isclose() of two dtypes, a condition or mask
// that is not BOOL); invalid_argument for an undefined operand, an integer divided by 0 in remainder(), and a
// bound that no value of an integer dtype meets. Those in place also Errc::overlap, not_representable and
// traced_value, and invalid_argument for memory that may not be written.
#pragma once

#include <optional>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// A result nobody else holds (`add(conv.forward(x), x)`, or std::move of one) lends its memory to the sum.
[[nodiscard]] Tensor add(Operand a, Operand b);
/// With the activation applied to the sum: the end of a residual block.
[[nodiscard]] Tensor add(Operand a, Operand b, Activation activation);
[[nodiscard]] Tensor sub(const Operand& a, const Operand& b);
[[nodiscard]] Tensor mul(const Operand& a, const Operand& b);
/// True division: of integers it gives F32.
[[nodiscard]] Tensor div(const Operand& a, const Operand& b);
[[nodiscard]] Tensor pow(const Operand& base, const Operand& exponent);
/// What is left of a when it is divided by b, with b's sign, as in Python. An integer 0 for b is refused.
[[nodiscard]] Tensor remainder(const Operand& a, const Operand& b);
/// The angle of the point (x, y); integers give F32.
[[nodiscard]] Tensor atan2(const Operand& y, const Operand& x);
/// NaN when either is. A number that is the answer but no value of an integer dtype (minimum(U8, -1)) is
/// refused.
[[nodiscard]] Tensor minimum(const Operand& a, const Operand& b);
[[nodiscard]] Tensor maximum(const Operand& a, const Operand& b);

[[nodiscard]] Tensor operator+(Operand a, Operand b);

[[nodiscard]] Tensor operator-(const Operand& a, const Operand& b);

[[nodiscard]] Tensor operator*(const Operand& a, const Operand& b);

[[nodiscard]] Tensor operator/(const Operand& a, const Operand& b);

/// In place, as in PyTorch: the elements `a` looks at are written, and every other view of them sees it; so
/// `t[0] += 1` changes t. `a` keeps its shape and dtype: what broadcasting or the kind of `b` would make
/// something else of is refused (Errc::shape_mismatch; Errc::bad_dtype for an I64 that would become
/// floating), as is memory that may not be written, an element seen at several positions (Errc::overlap), and
/// in a model that is traced a value that depends on its inputs (Errc::traced_value: there, write x = x + y).
Tensor& operator+=(Tensor& a, const Operand& b);
/// In place, as operator+=.
Tensor& operator-=(Tensor& a, const Operand& b);
/// In place, as operator+=.
Tensor& operator*=(Tensor& a, const Operand& b);
/// In place, as operator+=; integers are not divided.
Tensor& operator/=(Tensor& a, const Operand& b);

/// Of a view without a name, t[0] += 1, which is what it gives.
Tensor operator+=(Tensor&& a, const Operand& b);

/// Of a view without a name.
Tensor operator-=(Tensor&& a, const Operand& b);

/// Of a view without a name.
Tensor operator*=(Tensor&& a, const Operand& b);

/// Of a view without a name.
Tensor operator/=(Tensor&& a, const Operand& b);

/// Writes `values` into the elements `to` looks at, under the same conditions: assign(t[0], x) is PyTorch's
/// t[0] = x. They are spread to the shape and rounded to the dtype; a number an integer's dtype does not have
/// is refused (Errc::not_representable).
void assign(Tensor to, const Operand& values);

[[nodiscard]] Tensor neg(const Tensor& x);

[[nodiscard]] Tensor operator-(const Tensor& x);

[[nodiscard]] Tensor abs(const Tensor& x);
[[nodiscard]] Tensor sign(const Tensor& x);
[[nodiscard]] Tensor square(const Tensor& x);
// Of integers these give F32.
[[nodiscard]] Tensor exp(const Tensor& x);
[[nodiscard]] Tensor expm1(const Tensor& x);
[[nodiscard]] Tensor log(const Tensor& x);
[[nodiscard]] Tensor log1p(const Tensor& x);
[[nodiscard]] Tensor log2(const Tensor& x);
[[nodiscard]] Tensor sqrt(const Tensor& x);
[[nodiscard]] Tensor rsqrt(const Tensor& x);
[[nodiscard]] Tensor reciprocal(const Tensor& x);
[[nodiscard]] Tensor sin(const Tensor& x);
[[nodiscard]] Tensor cos(const Tensor& x);
[[nodiscard]] Tensor tan(const Tensor& x);
[[nodiscard]] Tensor erf(const Tensor& x);
// Integers are their own floor.
[[nodiscard]] Tensor floor(const Tensor& x);
[[nodiscard]] Tensor ceil(const Tensor& x);
/// Half way goes to the even neighbour.
[[nodiscard]] Tensor round(const Tensor& x);
[[nodiscard]] Tensor trunc(const Tensor& x);

/// To [low, high]; what is absent does not bound. NaN stays, and a bound that is NaN makes all NaN. Integers
/// with a bound that is not whole become F32, as in PyTorch.
[[nodiscard]] Tensor clamp(const Tensor& x, std::optional<double> low, std::optional<double> high);
/// a where the condition (BOOL) holds, else b.
[[nodiscard]] Tensor where(const Tensor& condition, const Operand& a, const Operand& b);
/// x with `value` where the mask (BOOL) holds.
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

// Comparisons and logic give BOOL. For logic, what is not zero is true.
[[nodiscard]] Tensor eq(const Operand& a, const Operand& b);
[[nodiscard]] Tensor ne(const Operand& a, const Operand& b);
[[nodiscard]] Tensor lt(const Operand& a, const Operand& b);
[[nodiscard]] Tensor le(const Operand& a, const Operand& b);
[[nodiscard]] Tensor gt(const Operand& a, const Operand& b);
[[nodiscard]] Tensor ge(const Operand& a, const Operand& b);

// Element by element too, as in PyTorch: all(a == b).item<bool>() asks for all of them. A Tensor is no bool,
// so what takes == for a question with one answer (std::find, EXPECT_EQ) does not compile instead of meaning
// something else. Tensor::same_view() asks whether two are the same elements.
[[nodiscard]] Tensor operator==(const Operand& a, const Operand& b);

[[nodiscard]] Tensor operator!=(const Operand& a, const Operand& b);

[[nodiscard]] Tensor operator<(const Operand& a, const Operand& b);

[[nodiscard]] Tensor operator<=(const Operand& a, const Operand& b);

[[nodiscard]] Tensor operator>(const Operand& a, const Operand& b);

[[nodiscard]] Tensor operator>=(const Operand& a, const Operand& b);

[[nodiscard]] Tensor logical_and(const Operand& a, const Operand& b);
[[nodiscard]] Tensor logical_or(const Operand& a, const Operand& b);
[[nodiscard]] Tensor logical_xor(const Operand& a, const Operand& b);
[[nodiscard]] Tensor logical_not(const Tensor& x);
[[nodiscard]] Tensor isnan(const Tensor& x);
[[nodiscard]] Tensor isinf(const Tensor& x);
[[nodiscard]] Tensor isfinite(const Tensor& x);

/// From `start` (weight 0) to `end` (weight 1).
[[nodiscard]] Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight);
/// |a - b| <= absolute + relative * |b|, or both the same infinity; NaN is close to NaN when `equal_nan`.
[[nodiscard]] Tensor isclose(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8,
                             bool equal_nan = false);
/// True when all are close.
[[nodiscard]] bool allclose(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8,
                            bool equal_nan = false);

}  // namespace ballast

#pragma GCC visibility pop
