// SPDX-License-Identifier: Apache-2.0
// Places drawn by weights.
#include <limits>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/reduce.h"
#include "ops/args.h"
#include "tensor/trace.h"

namespace ballast {
namespace {

void check_weights(const Tensor& weights, std::int64_t count, bool replacement) {
  const std::int64_t places = weights.shape()[weights.rank() - 1];
  if (count < 1 || places < 1 || (!replacement && count > places))
    fail(Errc::invalid_argument, "multinomial", "{} draws from {}", count, ops::form(weights));
  if (tracing::on() || weights.numel() == 0) return;
  const std::int64_t needed = replacement ? 1 : count;
  const Tensor possible = sum(gt(weights, 0), -1);
  if (!all(logical_and(ge(weights, 0), isfinite(weights))).item<bool>() ||
      min(possible).item() < static_cast<double>(needed))
    fail(Errc::invalid_argument, "multinomial",
         "weights must be finite, not negative, and at least {} of a row positive", needed);
}

}  // namespace

Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement, Generator& generator) {
  if (weights.rank() != 1 && weights.rank() != 2)
    fail(Errc::shape_mismatch, "multinomial", "{} is no list and no matrix", ops::form(weights));
  if (!is_floating(weights.dtype()))
    fail(Errc::bad_dtype, "multinomial", "weights are {}", ops::form(weights));
  check_weights(weights, count, replacement);
  const Tensor w = weights.to(DType::f64);
  if (!replacement) {  // the first `count` to arrive, each after a time its weight makes likely
    const Tensor u = rand(weights.shape(), generator).to(DType::f64);
    const Tensor time = neg(log1p(neg(add(u, 0x1p-25))));
    return topk(div(w, time), count, -1).indices;
  }
  Shape shape = weights.shape();
  shape[weights.rank() - 1] = count;
  const Tensor sums = cumsum(w, -1);
  const Tensor total = sums.narrow(-1, weights.shape()[weights.rank() - 1] - 1, 1);
  const Tensor u = mul(rand(shape, generator).to(DType::f64), total);
  return sum(le(sums.unsqueeze(-2), u.unsqueeze(-1)), -1);
}

Tensor rand_like(const Tensor& x, Generator& generator) {
  ops::require_defined("rand_like", x);
  if (!is_floating(x.dtype())) fail(Errc::bad_dtype, "rand_like", "{} is not floating", ops::form(x));
  return rand(x.shape(), generator).to(x.dtype());
}

Tensor randn_like(const Tensor& x, Generator& generator) {
  ops::require_defined("randn_like", x);
  if (!is_floating(x.dtype())) fail(Errc::bad_dtype, "randn_like", "{} is not floating", ops::form(x));
  return randn(x.shape(), generator).to(x.dtype());
}

Tensor randint_like(const Tensor& x, std::int64_t low, std::int64_t high, Generator& generator) {
  ops::require_defined("randint_like", x);
  return randint(low, high, x.shape(), generator).to(x.dtype());
}

Tensor gumbel_softmax(const Tensor& x, Generator& generator, double tau, bool hard, std::int64_t dim) {
  constexpr const char* kOp = "gumbel_softmax";
  if (!(tau > 0)) fail(Errc::invalid_argument, kOp, "tau is {}, must be above 0", tau);
  if (!is_floating(x.dtype())) fail(Errc::bad_dtype, kOp, "{} is not floating", ops::form(x));
  const Tensor noise = neg(log(neg(log(rand(x.shape(), generator)))));  // -inf for a 0: it never wins
  const DType wide = ops::compute_dtype(x.dtype());
  const Tensor soft = softmax(div(add(x.to(wide), noise.to(wide)), tau), dim);
  if (!hard) return soft.to(x.dtype());
  return scatter(zeros_like(soft), dim, argmax(soft, dim, true), 1).to(x.dtype());
}

}  // namespace ballast
