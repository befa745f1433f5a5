// SPDX-License-Identifier: Apache-2.0
// The public elementwise operations, by their names.
#include <cmath>
#include <limits>

#include "ballast/detail/ops/elementwise.h"
#include "ops/args.h"
#include "ops/elementwise.h"
#include "ops/walk.h"
#include "tensor/trace.h"

namespace ballast {
namespace {

// A power that a cheaper operation computes, when the exponent is such a number.
std::optional<Tensor> easy_power(const Operand& base, const Operand& exponent) {
  if (!exponent.is_number() || !is_floating(base.tensor().dtype())) return std::nullopt;
  const double e = exponent.tensor().item();
  if (e == 2) return square(base.tensor());
  if (e == 0.5) return sqrt(base.tensor());
  if (e == -0.5) return rsqrt(base.tensor());
  if (e == -1) return reciprocal(base.tensor());
  return std::nullopt;
}

// The values of an integer dtype, as numbers.
struct Range {
  double least;
  double most;
};

Range range_of(DType dtype) {
  const DTypeInfo& about = info(dtype);
  if (about.kind == DTypeKind::unsigned_integer) return {0, std::ldexp(1.0, about.bits) - 1};
  return {-std::ldexp(1.0, about.bits - 1), std::ldexp(1.0, about.bits - 1) - 1};
}

// A bound outside the dtype bounds nothing, or is the answer, which the dtype does not have.
void require_bounds_fit(const char* op, DType dtype, std::optional<double> low, std::optional<double> high) {
  const Range range = range_of(dtype);
  if (low && *low > range.most)
    fail(Errc::invalid_argument, op, "nothing in {} is as large as {}; use to() first", info(dtype).code,
         *low);
  if (high && *high < range.least)
    fail(Errc::invalid_argument, op, "nothing in {} is as small as {}; use to() first", info(dtype).code,
         *high);
}

// Only a number, or a tensor without dimensions, can have values the result's dtype does not have.
Tensor bounded(const char* op, ops::Binary which, const Operand& a, const Operand& b) {
  const DType dtype = ops::promoted(op, a, b);
  for (const Operand& operand : {a, b}) {
    const Tensor& bound = operand.tensor();
    if (is_floating(dtype) || bound.dtype() == dtype || bound.rank() > 0) continue;
    if (tracing::on() && !operand.is_number()) continue;
    if (which == ops::Binary::maximum)
      require_bounds_fit(op, dtype, bound.item(), {});
    else
      require_bounds_fit(op, dtype, {}, bound.item());
  }
  return ops::arithmetic(op, which, a, b);
}

template <class T>
void choose(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out) {
  const auto* when = reinterpret_cast<const std::uint8_t*>(condition.data());
  const auto* x = reinterpret_cast<const T*>(a.data());
  const auto* y = reinterpret_cast<const T*>(b.data());
  auto* to = reinterpret_cast<T*>(out.mutable_data());
  const ops::Walk walk{&out, &a, &b, &condition};
  const ops::Offsets step = walk.row_strides();
  walk.rows([&](const ops::Offsets& at, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      to[at[0] + i] = when[at[3] + i * step[3]] != 0 ? x[at[1] + i * step[1]] : y[at[2] + i * step[2]];
  });
}

}  // namespace

using ops::arithmetic;
using ops::Binary;
using ops::Compare;
using ops::comparison;
using ops::OnIntegers;
using ops::unary;
using ops::Unary;

Tensor add(const Operand& a, const Operand& b) {
  return arithmetic("add", Binary::add, a, b);
}

Tensor add(const Operand& a, const Operand& b, Activation activation) {
  if (activation.kind == Activation::Kind::none) return add(a, b);
  return ops::sum_activated(a, b, activation);
}

Tensor sub(const Operand& a, const Operand& b) {
  return arithmetic("sub", Binary::sub, a, b);
}

Tensor mul(const Operand& a, const Operand& b) {
  return arithmetic("mul", Binary::mul, a, b);
}

Tensor div(const Operand& a, const Operand& b) {
  return arithmetic("div", Binary::div, a, b);
}

Tensor pow(const Operand& base, const Operand& exponent) {
  if (const auto easy = easy_power(base, exponent)) return *easy;
  return arithmetic("pow", Binary::pow, base, exponent);
}

Tensor minimum(const Operand& a, const Operand& b) {
  return bounded("minimum", Binary::minimum, a, b);
}

Tensor maximum(const Operand& a, const Operand& b) {
  return bounded("maximum", Binary::maximum, a, b);
}

Tensor neg(const Tensor& x) {
  return unary("neg", Unary::neg, x, OnIntegers::keep);
}

Tensor abs(const Tensor& x) {
  return unary("abs", Unary::abs, x, OnIntegers::keep);
}

Tensor sign(const Tensor& x) {
  return unary("sign", Unary::sign, x, OnIntegers::keep);
}

Tensor square(const Tensor& x) {
  return unary("square", Unary::square, x, OnIntegers::keep);
}

Tensor exp(const Tensor& x) {
  return unary("exp", Unary::exp, x, OnIntegers::to_float);
}

Tensor expm1(const Tensor& x) {
  return unary("expm1", Unary::expm1, x, OnIntegers::to_float);
}

Tensor log(const Tensor& x) {
  return unary("log", Unary::log, x, OnIntegers::to_float);
}

Tensor log1p(const Tensor& x) {
  return unary("log1p", Unary::log1p, x, OnIntegers::to_float);
}

Tensor sqrt(const Tensor& x) {
  return unary("sqrt", Unary::sqrt, x, OnIntegers::to_float);
}

Tensor rsqrt(const Tensor& x) {
  return unary("rsqrt", Unary::rsqrt, x, OnIntegers::to_float);
}

Tensor reciprocal(const Tensor& x) {
  return unary("reciprocal", Unary::reciprocal, x, OnIntegers::to_float);
}

Tensor sin(const Tensor& x) {
  return unary("sin", Unary::sin, x, OnIntegers::to_float);
}

Tensor cos(const Tensor& x) {
  return unary("cos", Unary::cos, x, OnIntegers::to_float);
}

Tensor tan(const Tensor& x) {
  return unary("tan", Unary::tan, x, OnIntegers::to_float);
}

Tensor erf(const Tensor& x) {
  return unary("erf", Unary::erf, x, OnIntegers::to_float);
}

Tensor floor(const Tensor& x) {
  return unary("floor", Unary::floor, x, OnIntegers::keep);
}

Tensor ceil(const Tensor& x) {
  return unary("ceil", Unary::ceil, x, OnIntegers::keep);
}

Tensor round(const Tensor& x) {
  return unary("round", Unary::round, x, OnIntegers::keep);
}

Tensor trunc(const Tensor& x) {
  return unary("trunc", Unary::trunc, x, OnIntegers::keep);
}

Tensor clamp(const Tensor& x, std::optional<double> low, std::optional<double> high) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double least = low.value_or(-kInfinity);
  const double most = high.value_or(kInfinity);
  ops::require_computable("clamp", x);
  if (x.dtype() != DType::boolean) {
    if (std::isnan(least) || std::isnan(most)) return add(x, std::numeric_limits<double>::quiet_NaN());
    if (!is_floating(x.dtype())) {
      const auto is_whole = [](double bound) { return std::isinf(bound) || bound == std::trunc(bound); };
      if (!is_whole(least) || !is_whole(most)) return clamp(x.to(DType::f32), low, high);
      require_bounds_fit("clamp", x.dtype(), low, high);
    }
  }
  return unary("clamp", Unary::clamp, x, OnIntegers::keep, least, most);
}

Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  if (tracing::on())
    return tracing::record("where", {condition, a.tensor(), b.tensor()}, {},
                           [&] { return where(condition, a, b); });
  if (condition.dtype() != DType::boolean)
    fail(Errc::bad_dtype, "where", "the condition is {}, must be BOOL", ops::form(condition));
  const DType dtype = ops::promoted("where", a, b);
  const Shape shape = ops::broadcast("where", condition.shape(),
                                     ops::broadcast("where", a.tensor().shape(), b.tensor().shape()));
  const Tensor x = ops::aligned(a.tensor().to(dtype)).expand(shape);
  const Tensor y = ops::aligned(b.tensor().to(dtype)).expand(shape);
  Tensor out = ops::new_tensor(dtype, shape);
  if (out.numel() == 0) return out;
  const Tensor when = condition.expand(shape);
  switch (info(dtype).bits) {
    case 8:
      choose<std::uint8_t>(when, x, y, out);
      break;
    case 16:
      choose<std::uint16_t>(when, x, y, out);
      break;
    case 32:
      choose<std::uint32_t>(when, x, y, out);
      break;
    default:
      choose<std::uint64_t>(when, x, y, out);
      break;
  }
  return out;
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  ops::require_computable("masked_fill", x);
  return where(mask, Tensor::from({value}, {}).to(x.dtype()), x);
}

Tensor eq(const Operand& a, const Operand& b) {
  return comparison("eq", Compare::eq, a, b);
}

Tensor ne(const Operand& a, const Operand& b) {
  return comparison("ne", Compare::ne, a, b);
}

Tensor lt(const Operand& a, const Operand& b) {
  return comparison("lt", Compare::lt, a, b);
}

Tensor le(const Operand& a, const Operand& b) {
  return comparison("le", Compare::le, a, b);
}

Tensor gt(const Operand& a, const Operand& b) {
  return comparison("gt", Compare::gt, a, b);
}

Tensor ge(const Operand& a, const Operand& b) {
  return comparison("ge", Compare::ge, a, b);
}

Tensor logical_and(const Operand& a, const Operand& b) {
  return comparison("logical_and", Compare::logical_and, a, b);
}

Tensor logical_or(const Operand& a, const Operand& b) {
  return comparison("logical_or", Compare::logical_or, a, b);
}

Tensor logical_xor(const Operand& a, const Operand& b) {
  return comparison("logical_xor", Compare::logical_xor, a, b);
}

Tensor logical_not(const Tensor& x) {
  return comparison("logical_not", Compare::eq, x, false);
}

Tensor isnan(const Tensor& x) {
  return comparison("isnan", Compare::ne, x, x);
}

Tensor isinf(const Tensor& x) {
  return comparison("isinf", Compare::eq, abs(x), std::numeric_limits<double>::infinity());
}

}  // namespace ballast
