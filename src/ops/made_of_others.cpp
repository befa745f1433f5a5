// SPDX-License-Identifier: Apache-2.0
// Functions of values that are made of other operations: a trace, and so an ONNX file, sees those.
#include "ops/made_of_others.h"

#include <cmath>
#include <limits>
#include <vector>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/norm.h"
#include "ballast/detail/ops/pool.h"
#include "ballast/detail/ops/reduce.h"
#include "ops/args.h"

namespace ballast {

using ops::rounded_once;

Tensor isfinite(const Tensor& x) {
  return lt(abs(x), std::numeric_limits<double>::infinity());  // NaN is not less
}

Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight) {
  if (start.dtype() != end.dtype() || !is_floating(start.dtype()))
    fail(Errc::bad_dtype, "lerp", "from {} to {}: one floating dtype is wanted", ops::form(start),
         ops::form(end));
  return rounded_once(start, [&](const Tensor& from) {
    const Tensor to = end.to(from.dtype());
    const Tensor distance = sub(to, from);
    // From the nearer end, so that both ends are reached.
    const Tensor near = add(from, mul(distance, weight));
    const Tensor far = sub(to, mul(distance, sub(1, weight)));
    return where(lt(abs(weight.tensor()), 0.5), near, far);
  });
}

Tensor isclose(const Tensor& a, const Tensor& b, double relative, double absolute, bool equal_nan) {
  if (a.dtype() != b.dtype())
    fail(Errc::bad_dtype, "isclose", "{} and {} do not have one dtype", ops::form(a), ops::form(b));
  // In F64, where no distance of two numbers of another dtype is rounded away.
  const Tensor x = a.to(DType::f64);
  const Tensor y = b.to(DType::f64);
  const Tensor near = le(abs(sub(x, y)), add(mul(abs(y), relative), absolute));
  Tensor close = logical_or(eq(x, y), logical_and(near, logical_and(isfinite(x), isfinite(y))));
  return equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
}

bool allclose(const Tensor& a, const Tensor& b, double relative, double absolute, bool equal_nan) {
  return all(isclose(a, b, relative, absolute, equal_nan)).item<bool>();
}

Tensor celu(const Tensor& x, double alpha) {
  if (alpha == 0) fail(Errc::invalid_argument, "celu", "alpha is 0");
  return rounded_once(x,
                      [&](const Tensor& v) { return where(gt(v, 0), v, mul(expm1(div(v, alpha)), alpha)); });
}

Tensor hardshrink(const Tensor& x, double lambda) {
  return where(le(abs(x), lambda), 0, x);
}

Tensor softshrink(const Tensor& x, double lambda) {
  if (lambda < 0) fail(Errc::invalid_argument, "softshrink", "lambda is {}", lambda);
  return rounded_once(
      x, [&](const Tensor& v) { return where(le(abs(v), lambda), 0, sub(v, mul(sign(v), lambda))); });
}

Tensor tanhshrink(const Tensor& x) {
  return rounded_once(x, [](const Tensor& v) { return sub(v, tanh(v)); });
}

Tensor threshold(const Tensor& x, double threshold, double value) {
  return where(le(x, threshold), full({}, value, x.dtype()), x);
}

Tensor glu(const Tensor& x, std::int64_t dim) {
  const std::size_t axis = ops::axis_of("glu", dim, x);
  if (x.rank() == 0 || x.shape()[axis] % 2 != 0)
    fail(Errc::shape_mismatch, "glu", "dimension {} of {} has no halves", dim, ops::form(x));
  const std::int64_t half = x.shape()[axis] / 2;
  return rounded_once(
      x, [&](const Tensor& v) { return mul(v.narrow(dim, 0, half), sigmoid(v.narrow(dim, half, half))); });
}

Tensor softmin(const Tensor& x, std::int64_t dim) {
  return softmax(neg(x), dim);
}

Tensor normalize(const Tensor& x, double p, std::int64_t dim, double eps) {
  return rounded_once(x, [&](const Tensor& v) { return div(v, clamp(norm(v, p, dim, true), eps, {})); });
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim, double eps) {
  const DType dtype = ops::promoted("cosine_similarity", a, b);
  if (!is_floating(dtype))
    fail(Errc::bad_dtype, "cosine_similarity", "of {} and {} there is none", ops::form(a), ops::form(b));
  const Shape shape = ops::broadcast("cosine_similarity", a.shape(), b.shape());
  const DType wide = ops::compute_dtype(dtype);
  const Tensor x = a.to(wide).expand(shape);
  const Tensor y = b.to(wide).expand(shape);
  const auto length = [&](const Tensor& v) { return clamp(norm(v, 2, dim, true), eps, {}); };
  return sum(mul(div(x, length(x)), div(y, length(y))), dim).to(dtype);
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  const DType dtype = ops::promoted("pairwise_distance", a, b);
  const DType wide = ops::compute_dtype(dtype);
  return norm(add(sub(a.to(wide), b.to(wide)), eps), p, -1, keepdim).to(dtype);
}

Tensor pdist(const Tensor& x, double p) {
  if (x.rank() != 2 || !is_floating(x.dtype()))
    fail(Errc::shape_mismatch, "pdist", "{} is not floating [rows, features]", ops::form(x));
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> second;
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
    for (std::int64_t j = i + 1; j < x.shape()[0]; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  }
  const auto count = static_cast<std::int64_t>(first.size());
  const auto rows = [&](const Tensor& v, const std::vector<std::int64_t>& places) {
    return index_select(v, 0, Tensor::from(places, {count}));
  };
  return rounded_once(x, [&](const Tensor& v) { return norm(sub(rows(v, first), rows(v, second)), p, -1); });
}

Tensor rrelu(const Tensor& x, double lower, double upper) {
  return leaky_relu(x, (lower + upper) / 2);
}

Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha, double beta, double k) {
  if (x.rank() < 3) fail(Errc::shape_mismatch, "local_response_norm", "{} has no size", ops::form(x));
  if (size < 1) fail(Errc::invalid_argument, "local_response_norm", "a size of {}", size);
  if (x.numel() == 0) return x.clone();
  return rounded_once(x, [&](const Tensor& v) {
    const Tensor squares = square(v).reshape({v.shape()[0], 1, v.shape()[1], -1});
    const Tensor padded = pad(squares, {0, 0, size / 2, (size - 1) / 2});
    const Tensor mean = avg_pool(padded, {size, 1}, {.stride = {1}}).reshape(v.shape());
    return div(v, pow(add(mul(mean, alpha), k), beta));
  });
}

Tensor zeros_like(const Tensor& x) {
  ops::require_defined("zeros_like", x);
  return zeros(x.shape(), x.dtype());
}

Tensor ones_like(const Tensor& x) {
  ops::require_defined("ones_like", x);
  return ones(x.shape(), x.dtype());
}

Tensor full_like(const Tensor& x, double value) {
  ops::require_defined("full_like", x);
  return full(x.shape(), value, x.dtype());
}

}  // namespace ballast
