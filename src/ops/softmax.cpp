// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.h"

#include <algorithm>
#include <cmath>

#include "ops/args.h"
#include "ops/parallel.h"

namespace ballast::ops {
namespace {

void wide_row(const double* in, double* out, std::int64_t n, bool logarithm) {
  double most = in[0];
  for (std::int64_t i = 0; i < n; ++i)
    if (in[i] > most || std::isnan(in[i])) most = in[i];
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += out[i] = std::exp(in[i] - most);
  for (std::int64_t i = 0; i < n; ++i) out[i] = logarithm ? in[i] - most - std::log(sum) : out[i] / sum;
}

}  // namespace

Tensor wide_softmax(const char* op, const Tensor& x, std::int64_t dim, bool logarithm) {
  const auto axis = static_cast<std::int64_t>(axis_of(op, dim, x));
  if (x.rank() == 0) return wide_softmax(op, x.reshape({1}), 0, logarithm).reshape({});
  const auto last = static_cast<std::int64_t>(x.rank()) - 1;
  const Tensor in = dense(axis == last ? x : x.transpose(axis, last));
  Tensor out = new_tensor(DType::f64, in.shape());
  if (out.numel() > 0) {
    const std::int64_t n = in.shape()[in.rank() - 1];
    const double* from = in.span<double>().data();
    auto* to = reinterpret_cast<double*>(out.mutable_data());
    parallel(in.numel() / n, std::max<std::int64_t>(1, 1024 / n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) wide_row(from + row * n, to + row * n, n, logarithm);
    });
  }
  return axis == last ? out : out.transpose(axis, last).contiguous();
}

Tensor softmax_along(const char* op, const Tensor& x, std::int64_t dim, RowKernel kernel) {
  const std::size_t axis = axis_of(op, dim, x);
  if (x.rank() == 0) return softmax_along(op, x.reshape({1}), 0, kernel).reshape({});
  const auto last = static_cast<std::int64_t>(x.rank()) - 1;
  const auto place = static_cast<std::int64_t>(axis);
  const Tensor in = dense_floats(op, place == last ? x : x.transpose(place, last));
  Tensor out = new_floats(in.shape());
  if (out.numel() > 0) {
    const std::int64_t n = in.shape()[in.rank() - 1];
    const float* from = data_of(in);
    float* to = data_of(out);
    parallel(in.numel() / n, std::max<std::int64_t>(1, 8192 / n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) kernel(from + row * n, to + row * n, n);
    });
  }
  const Tensor result = place == last ? out : out.transpose(place, last).contiguous();
  return result.to(x.dtype());
}

}  // namespace ballast::ops
