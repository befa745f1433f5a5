// SPDX-License-Identifier: Apache-2.0
// The public elementwise operations, by their names.
#include <cmath>
#include <limits>
#include <utility>

#include "ballast/detail/ops/elementwise.h"
#include "ops/args.h"
#include "ops/elementwise.h"
#include "ops/native.h"
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
Tensor bounded(const operations::Arithmetic& op, const Operand& a, const Operand& b) {
  const DType dtype = ops::promoted(op.name, a, b);
  for (const Operand& operand : {a, b}) {
    const Tensor& bound = operand.tensor();
    if (is_floating(dtype) || bound.dtype() == dtype || bound.rank() > 0) continue;
    if (tracing::on() && !operand.is_number()) continue;
    if (&op == &operations::maximum)
      require_bounds_fit(op.name, dtype, bound.item(), {});
    else
      require_bounds_fit(op.name, dtype, {}, bound.item());
  }
  return run(op, a, b);
}

// A number counts as the value of the tensor's dtype next to it, as in PyTorch: an F16 made of 0.1 equals
// 0.1.
Operand as_value_of(DType dtype, const Operand& operand) {
  const bool is_alone = operand.tensor().rank() == 0 && is_floating(operand.tensor().dtype());
  if (!is_alone || !is_floating(dtype) || ops::compute_dtype(dtype) == dtype) return operand;
  return operand.tensor().to(dtype);
}

Tensor compared(const operations::Comparison& op, const Operand& a, const Operand& b) {
  const DType dtype = ops::promoted(op.name, a, b);
  return run(op, as_value_of(dtype, a), as_value_of(dtype, b), dtype);
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

Tensor where_cpu(const Operation&, const Tensor& condition, const Operand& a, const Operand& b) {
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

Tensor clamp_cpu(const Operation& op, const Tensor& x, double low, double high) {
  return ops::unary(op.name, ops::Unary::clamp, x, ops::OnIntegers::keep, low, high);
}

}  // namespace

namespace operations {

using ops::arithmetic_row;
using ops::Binary;
using ops::Compare;
using ops::comparison_row;
using ops::function_row;
using ops::OnIntegers;
using ops::Unary;

constinit const Sum add = {about("add", {"a", "b"}, {}, forms::arithmetic), {ops::sum_cpu}};
constinit const Arithmetic sub = arithmetic_row<Binary::sub>("sub");
constinit const Arithmetic mul = arithmetic_row<Binary::mul>("mul");
constinit const Arithmetic div = arithmetic_row<Binary::div>("div", forms::quotient);
constinit const Arithmetic pow = arithmetic_row<Binary::pow>("pow");
constinit const Arithmetic minimum = arithmetic_row<Binary::minimum>("minimum");
constinit const Arithmetic maximum = arithmetic_row<Binary::maximum>("maximum");
constinit const Function neg = function_row<Unary::neg, OnIntegers::keep>("neg");
constinit const Function abs = function_row<Unary::abs, OnIntegers::keep>("abs");
constinit const Function sign = function_row<Unary::sign, OnIntegers::keep>("sign");
constinit const Function square = function_row<Unary::square, OnIntegers::keep>("square");
constinit const Function exp = function_row<Unary::exp, OnIntegers::to_float>("exp");
constinit const Function expm1 = function_row<Unary::expm1, OnIntegers::to_float>("expm1");
constinit const Function log = function_row<Unary::log, OnIntegers::to_float>("log");
constinit const Function log1p = function_row<Unary::log1p, OnIntegers::to_float>("log1p");
constinit const Function sqrt = function_row<Unary::sqrt, OnIntegers::to_float>("sqrt");
constinit const Function rsqrt = function_row<Unary::rsqrt, OnIntegers::to_float>("rsqrt");
constinit const Function reciprocal = function_row<Unary::reciprocal, OnIntegers::to_float>("reciprocal");
constinit const Function sin = function_row<Unary::sin, OnIntegers::to_float>("sin");
constinit const Function cos = function_row<Unary::cos, OnIntegers::to_float>("cos");
constinit const Function tan = function_row<Unary::tan, OnIntegers::to_float>("tan");
constinit const Function erf = function_row<Unary::erf, OnIntegers::to_float>("erf");
constinit const Function floor = function_row<Unary::floor, OnIntegers::keep>("floor");
constinit const Function ceil = function_row<Unary::ceil, OnIntegers::keep>("ceil");
constinit const Function round = function_row<Unary::round, OnIntegers::keep>("round");
constinit const Function trunc = function_row<Unary::trunc, OnIntegers::keep>("trunc");
constinit const Comparison eq = comparison_row<Compare::eq>("eq");
constinit const Comparison ne = comparison_row<Compare::ne>("ne");
constinit const Comparison lt = comparison_row<Compare::lt>("lt");
constinit const Comparison le = comparison_row<Compare::le>("le");
constinit const Comparison gt = comparison_row<Compare::gt>("gt");
constinit const Comparison ge = comparison_row<Compare::ge>("ge");
constinit const Comparison logical_and = comparison_row<Compare::logical_and>("logical_and");
constinit const Comparison logical_or = comparison_row<Compare::logical_or>("logical_or");
constinit const Comparison logical_xor = comparison_row<Compare::logical_xor>("logical_xor");
constinit const Comparison logical_not = comparison_row<Compare::eq>("logical_not");
constinit const Comparison isnan = comparison_row<Compare::ne>("isnan");
constinit const Comparison isinf = comparison_row<Compare::eq>("isinf");
constinit const ThreeOperands where = {about("where", {"condition", "a", "b"}, {}, forms::where),
                                       {where_cpu}};
constinit const TwoNumbers clamp = {about("clamp", {"x"}, {"low", "high"}, forms::function), {clamp_cpu}};

}  // namespace operations

Tensor add(Operand a, Operand b) {
  return add(std::move(a), std::move(b), Activation{});
}

// The operands are this call's own: what they alone look at, the caller has given up.
Tensor add(Operand a, Operand b, Activation activation) {
  Tensor memory = ops::last_use_of(a.tensor());
  if (!memory.defined()) memory = ops::last_use_of(b.tensor());
  return ops::run_activated(operations::add, activation, a, b, &memory);
}

Tensor sub(const Operand& a, const Operand& b) {
  return run(operations::sub, a, b);
}

Tensor mul(const Operand& a, const Operand& b) {
  return run(operations::mul, a, b);
}

Tensor div(const Operand& a, const Operand& b) {
  return run(operations::div, a, b);
}

Tensor pow(const Operand& base, const Operand& exponent) {
  if (const auto easy = easy_power(base, exponent)) return *easy;
  return run(operations::pow, base, exponent);
}

Tensor minimum(const Operand& a, const Operand& b) {
  return bounded(operations::minimum, a, b);
}

Tensor maximum(const Operand& a, const Operand& b) {
  return bounded(operations::maximum, a, b);
}

Tensor neg(const Tensor& x) {
  return run(operations::neg, x);
}

Tensor abs(const Tensor& x) {
  return run(operations::abs, x);
}

Tensor sign(const Tensor& x) {
  return run(operations::sign, x);
}

Tensor square(const Tensor& x) {
  return run(operations::square, x);
}

Tensor exp(const Tensor& x) {
  return run(operations::exp, x);
}

Tensor expm1(const Tensor& x) {
  return run(operations::expm1, x);
}

Tensor log(const Tensor& x) {
  return run(operations::log, x);
}

Tensor log1p(const Tensor& x) {
  return run(operations::log1p, x);
}

Tensor sqrt(const Tensor& x) {
  return run(operations::sqrt, x);
}

Tensor rsqrt(const Tensor& x) {
  return run(operations::rsqrt, x);
}

Tensor reciprocal(const Tensor& x) {
  return run(operations::reciprocal, x);
}

Tensor sin(const Tensor& x) {
  return run(operations::sin, x);
}

Tensor cos(const Tensor& x) {
  return run(operations::cos, x);
}

Tensor tan(const Tensor& x) {
  return run(operations::tan, x);
}

Tensor erf(const Tensor& x) {
  return run(operations::erf, x);
}

Tensor floor(const Tensor& x) {
  return run(operations::floor, x);
}

Tensor ceil(const Tensor& x) {
  return run(operations::ceil, x);
}

Tensor round(const Tensor& x) {
  return run(operations::round, x);
}

Tensor trunc(const Tensor& x) {
  return run(operations::trunc, x);
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
  return run(operations::clamp, x, least, most);
}

Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  return run(operations::where, condition, a, b);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  ops::require_computable("masked_fill", x);
  return where(mask, Tensor::from({value}, {}).to(x.dtype()), x);
}

Tensor eq(const Operand& a, const Operand& b) {
  return compared(operations::eq, a, b);
}

Tensor ne(const Operand& a, const Operand& b) {
  return compared(operations::ne, a, b);
}

Tensor lt(const Operand& a, const Operand& b) {
  return compared(operations::lt, a, b);
}

Tensor le(const Operand& a, const Operand& b) {
  return compared(operations::le, a, b);
}

Tensor gt(const Operand& a, const Operand& b) {
  return compared(operations::gt, a, b);
}

Tensor ge(const Operand& a, const Operand& b) {
  return compared(operations::ge, a, b);
}

Tensor logical_and(const Operand& a, const Operand& b) {
  return compared(operations::logical_and, a, b);
}

Tensor logical_or(const Operand& a, const Operand& b) {
  return compared(operations::logical_or, a, b);
}

Tensor logical_xor(const Operand& a, const Operand& b) {
  return compared(operations::logical_xor, a, b);
}

Tensor logical_not(const Tensor& x) {
  return compared(operations::logical_not, x, false);
}

Tensor isnan(const Tensor& x) {
  return compared(operations::isnan, x, x);
}

Tensor isinf(const Tensor& x) {
  return compared(operations::isinf, abs(x), std::numeric_limits<double>::infinity());
}

}  // namespace ballast
