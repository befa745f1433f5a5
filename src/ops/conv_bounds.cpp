// SPDX-License-Identifier: Apache-2.0
#include "ops/conv_bounds.h"

#include <algorithm>
#include <cmath>

#include "ops/args.h"
#include "ops/bounds.h"
#include "ops/cache.h"
#include "ops/native.h"
#include "ops/onednn.h"
#include "ops/winograd.h"

namespace ballast::ops {
namespace {

// A transposed convolution's weight as [out, …], all that one output is made of in a row.
Tensor by_outputs(const Tensor& weight, std::int64_t groups) {
  const Shape& shape = weight.shape();
  return weight.reshape({groups, shape[0] / groups, shape[1], -1})
      .transpose(1, 2)
      .contiguous()
      .reshape({groups * shape[1], -1});
}

// What the weights make of the largest value; looked at once for a layer.
Gain gain_for(const ConvCall& call, std::int64_t groups) {
  if (call.cache == nullptr || call.weight.numel() == 0) return {};
  CacheKey key;
  key.add(call.weight).add(call.bias);
  return *cached<Gain>(call.cache, key, [&] {
    const Tensor bias = call.bias.defined() ? dense_floats(call.op, call.bias) : Tensor();
    const Tensor weight = dense_floats_once(call.op, call.weight);
    return gain_of(call.transposed ? by_outputs(weight, groups) : weight, bias);
  });
}

struct Bounds {
  double results;
  double operands;  // pixels, and what a filter adds up to
};

bool stay_finite_by_patches(const Bounds& bounds) {
  return stays_finite_by_patches(bounds.results) && stays_finite_by_patches(bounds.operands);
}

Bounds bounds_of(const ConvCall& call, const Tensor& x, std::int64_t groups, bool patches) {
  const double known = bound_of(x);
  const bool may_look =
      !call.transposed && (patches || is_step_when_finite(call.activation)) && x.dtype() == DType::f32;
  if (!std::isfinite(known) && !may_look) return {kUnbounded, kUnbounded};
  const Gain gain = gain_for(call, groups);
  const auto with = [&](double largest) { return Bounds{gain.of(largest), std::max(largest, gain.factor)}; };
  const Bounds first = with(known);
  const bool enough = patches ? stay_finite_by_patches(first) : stays_finite(first.results);
  if (enough || !may_look || !std::isfinite(gain.factor)) return first;
  return with(largest_magnitude(x));
}

}  // namespace

Expected expected(const ConvCall& call, const ConvShapes& shapes, const Tensor& x) {
  const bool patches = !call.transposed && call.cache != nullptr && fits_winograd(shapes, x.shape());
  const Bounds bounds = bounds_of(call, x, shapes.groups, patches);
  return {bounds.results, stays_finite(bounds.results), patches && stay_finite_by_patches(bounds)};
}

double bound_after(const Expected& results, Activation activation) {
  if (!results.finite) return kUnbounded;
  if (activation.kind == Activation::Kind::none || activation.kind == Activation::Kind::relu)
    return results.bound;
  return activation.kind == Activation::Kind::relu6 ? std::min(results.bound, 6.0) : kUnbounded;
}

}  // namespace ballast::ops
