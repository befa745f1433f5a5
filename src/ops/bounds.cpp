// SPDX-License-Identifier: Apache-2.0
#include "ops/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ops/args.h"
#include "ops/kernels.h"
#include "ops/native.h"
#include "ops/parallel.h"

namespace ballast::ops {
namespace {

constexpr std::int64_t kAtOnce = 8192;  // values that are looked at twice while they are in the cache

// NaN becomes NaN.
double magnitude_of(const float* from, std::int64_t n) {
  double largest = 0;
  for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, n - begin);
    const double high = kernels().max(from + begin, count);
    const double low = kernels().min(from + begin, count);
    if (std::isnan(high)) return high;
    largest = std::max({largest, high, -low});
  }
  return largest;
}

double sum_of_magnitudes(const float* from, std::int64_t n) {
  std::array<float, kAtOnce> magnitudes;
  double sum = 0;
  for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, n - begin);
    kernels().unary[static_cast<std::size_t>(Unary::abs)](from + begin, magnitudes.data(), count, 0, 0);
    sum += kernels().sum(magnitudes.data(), count);
  }
  return sum;
}

// The largest of `count` numbers, which threads find; NaN and infinity become kUnbounded.
template <class Find>
double largest_of(std::int64_t count, std::int64_t grain, const Find& find) {
  std::vector<double> found(static_cast<std::size_t>(count));
  parallel(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) found[static_cast<std::size_t>(i)] = find(i);
  });
  double largest = 0;
  for (const double each : found) {
    if (!std::isfinite(each)) return kUnbounded;
    largest = std::max(largest, each);
  }
  return largest;
}

}  // namespace

double largest_magnitude(const Tensor& x) {
  const Tensor blocks = blocks_of(x);
  const Tensor values = blocks.defined() ? blocks : native_view(x);
  const bool dense = values.is_contiguous() || is_channels_last(values);
  if (values.dtype() != DType::f32 || !dense || !is_aligned(values)) return kUnbounded;
  const float* from = data_of(values);
  const std::int64_t n = values.numel();
  return largest_of((n - 1) / kAtOnce + 1, 4, [&](std::int64_t i) {
    return magnitude_of(from + i * kAtOnce, std::min(kAtOnce, n - i * kAtOnce));
  });
}

Gain gain_of(const Tensor& weight, const Tensor& bias) {
  const std::int64_t outs = weight.shape()[0];
  if (weight.numel() == 0) return {};
  const std::int64_t terms = weight.numel() / outs;
  const float* from = data_of(weight);
  const double factor = largest_of(outs, kAtOnce * 4 / terms + 1, [&](std::int64_t i) {
    return sum_of_magnitudes(from + i * terms, terms);
  });
  return {factor, bias.defined() ? largest_magnitude(bias) : 0};
}

}  // namespace ballast::ops
