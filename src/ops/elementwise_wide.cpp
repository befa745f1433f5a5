// SPDX-License-Identifier: Apache-2.0
// F64 and integers: one value at a time. Weights are hardly ever these; being right is enough.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "ops/elementwise.h"

namespace ballast::ops {
namespace {

double gelu_tanh_value(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

double softplus_value(double x, double beta, double threshold) {
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}

double hardsigmoid_value(double x) {
  return std::isnan(x) ? x : std::clamp(x + 3, 0.0, 6.0) / 6;
}

double activation_value(Unary which, double x, double p, double q) {
  switch (which) {
    case Unary::relu:
      return x < 0 ? 0 : x;
    case Unary::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Unary::gelu_tanh:
      return gelu_tanh_value(x);
    case Unary::silu:
      return x / (1 + std::exp(-x));
    case Unary::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Unary::log_sigmoid:
      return (x < 0 ? x : 0) - std::log1p(std::exp(-std::abs(x)));
    case Unary::tanh:
      return std::tanh(x);
    case Unary::mish:
      return x * std::tanh(softplus_value(x, 1, 20));
    case Unary::softsign:
      return x / (1 + std::abs(x));
    case Unary::hardswish:
      return x * hardsigmoid_value(x);
    case Unary::hardsigmoid:
      return hardsigmoid_value(x);
    case Unary::clamp:
      x = x < p ? p : x;
      return x > q ? q : x;
    case Unary::softplus:
      return softplus_value(x, p, q);
    case Unary::elu:
      return q * (x > 0 ? x : p * std::expm1(x));
    case Unary::leaky_relu:
      return x > 0 ? x : x * p;
    case Unary::scale_shift:
      return x * p + q;
    default:
      break;
  }
  return x;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {  // what PyTorch gives: the truncated true value
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  std::uint64_t result = 1;
  auto factor = static_cast<std::uint64_t>(base);
  for (auto e = static_cast<std::uint64_t>(exponent); e != 0; e >>= 1U, factor *= factor) {
    if ((e & 1U) != 0) result *= factor;
  }
  return static_cast<std::int64_t>(result);
}

// A whole number or an infinity, or the 64-bit number next to it.
std::int64_t whole(double bound) {
  if (bound < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return bound >= 0x1p63 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(bound);
}

template <class To>
void narrow_into(const Tensor& wide, Tensor& out) {
  const auto in = wide.span<std::int64_t>();
  auto* to = reinterpret_cast<To*>(out.mutable_data());
  for (std::size_t i = 0; i < in.size(); ++i) to[i] = static_cast<To>(in[i]);
}

}  // namespace

double unary_value(Unary which, double x, double p, double q) {
  switch (which) {
    case Unary::neg:
      return -x;
    case Unary::abs:
      return std::abs(x);
    case Unary::exp:
      return std::exp(x);
    case Unary::expm1:
      return std::expm1(x);
    case Unary::log:
      return std::log(x);
    case Unary::log1p:
      return std::log1p(x);
    case Unary::sqrt:
      return std::sqrt(x);
    case Unary::rsqrt:
      return 1 / std::sqrt(x);
    case Unary::reciprocal:
      return 1 / x;
    case Unary::square:
      return x * x;
    case Unary::sin:
      return std::sin(x);
    case Unary::cos:
      return std::cos(x);
    case Unary::tan:
      return std::tan(x);
    case Unary::erf:
      return std::erf(x);
    case Unary::floor:
      return std::floor(x);
    case Unary::ceil:
      return std::ceil(x);
    case Unary::round:
      return std::nearbyint(x);
    case Unary::trunc:
      return std::trunc(x);
    case Unary::sign:
      return (x > 0 ? 1.0 : 0.0) - (x < 0 ? 1.0 : 0.0);
    default:
      return activation_value(which, x, p, q);
  }
}

std::int64_t unary_value(Unary which, std::int64_t x, double p, double q) {
  const auto negated = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x));
  switch (which) {
    case Unary::neg:
      return negated;
    case Unary::abs:
      return x < 0 ? negated : x;
    case Unary::square:
      return power(x, 2);
    case Unary::sign:
      return (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0);
    case Unary::relu:
      return x < 0 ? 0 : x;
    case Unary::clamp:
      x = std::max(x, whole(p));
      return std::min(x, whole(q));
    default:
      return x;  // floor and its like
  }
}

double binary_value(Binary which, double a, double b) {
  switch (which) {
    case Binary::add:
      return a + b;
    case Binary::sub:
      return a - b;
    case Binary::mul:
      return a * b;
    case Binary::div:
      return a / b;
    case Binary::pow:
      return std::pow(a, b);
    case Binary::minimum:
      return a < b || std::isnan(a) ? a : b;
    case Binary::maximum:
      return a > b || std::isnan(a) ? a : b;
    case Binary::prelu:
      return a > 0 ? a : a * b;
  }
  return a;
}

std::int64_t binary_value(Binary which, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a);  // sums and products go round at 64 bits
  const auto y = static_cast<std::uint64_t>(b);
  switch (which) {
    case Binary::add:
      return static_cast<std::int64_t>(x + y);
    case Binary::sub:
      return static_cast<std::int64_t>(x - y);
    case Binary::mul:
      return static_cast<std::int64_t>(x * y);
    case Binary::pow:
      return power(a, b);
    case Binary::minimum:
      return std::min(a, b);
    case Binary::maximum:
      return std::max(a, b);
    case Binary::div:
    case Binary::prelu:
      break;
  }
  fail(Errc::bad_dtype, "elementwise", "no such operation on integers");
}

Tensor narrowed(const Tensor& wide, DType dtype) {
  if (dtype == DType::i64) return wide;
  if (dtype == DType::boolean) return wide.to(dtype);
  Tensor out = Tensor::empty(dtype, wide.shape());
  if (dtype == DType::i32)
    narrow_into<std::int32_t>(wide, out);
  else if (dtype == DType::i16)
    narrow_into<std::int16_t>(wide, out);
  else if (dtype == DType::i8)
    narrow_into<std::int8_t>(wide, out);
  else
    narrow_into<std::uint8_t>(wide, out);
  return out;
}

}  // namespace ballast::ops
