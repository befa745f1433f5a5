// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/norm.h"

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/norm.h"
#include "ballast/detail/ops/pool.h"
#include "ballast/detail/ops/reduce.h"
#include "nn/parameters.h"
#include "ops/made_of_others.h"

namespace ballast::nn {
namespace {

template <class Norm>
void make_running_norm(Norm& norm) {
  const Shape shape{norm.num_features};
  if (norm.options.affine) {
    norm.gamma = parameter(shape);
    norm.beta = parameter(shape);
  }
  if (norm.options.track_running_stats) {
    norm.running_mean = parameter(shape);
    norm.running_var = parameter(shape);
    norm.num_batches_tracked = Tensor(DType::i64, {});
  }
}

// Of every channel (dimension 1).
Dims all_but_channels(const Tensor& x) {
  Dims dims = {0};
  for (std::size_t i = 2; i < x.rank(); ++i) dims.push_back(static_cast<std::int64_t>(i));
  return dims;
}

}  // namespace

BatchNorm::BatchNorm(std::int64_t features, const BatchNormOptions& norm_options)
    : num_features(features), options(norm_options) {
  make_running_norm(*this);
}

Tensor BatchNorm::forward(const Tensor& x, Activation activation) const {
  return place.run("BatchNorm", [&] {
    if (folded()) return activate(x, activation);
    if (options.track_running_stats)
      return activate(batch_norm(x, running_mean, running_var, gamma, beta, options.eps), activation);
    if (x.rank() < 2)
      fail(Errc::shape_mismatch, "batch_norm", "{} has no channels (dimension 1)", to_string(x.shape()));
    const Dims dims = all_but_channels(x);
    const Tensor wide = x.to(DType::f32);
    return activate(batch_norm(x, mean(wide, dims), var(wide, dims, false, 0), gamma, beta, options.eps),
                    activation);
  });
}

InstanceNorm::InstanceNorm(std::int64_t features, const InstanceNormOptions& norm_options)
    : num_features(features), options(norm_options) {
  make_running_norm(*this);
}

Tensor InstanceNorm::forward(const Tensor& x, std::size_t spatial) const {
  return place.run("InstanceNorm", [&] {
    if (x.rank() != spatial + 1 && x.rank() != spatial + 2)
      fail(Errc::shape_mismatch, "instance_norm", "{} is not [batch, {}, size…] with {} sizes",
           to_string(x.shape()), num_features, spatial);
    const bool batched = x.rank() == spatial + 2;
    const Tensor in = batched ? x : x.unsqueeze(0);
    const Tensor out = options.track_running_stats
                           ? batch_norm(in, running_mean, running_var, gamma, beta, options.eps)
                           : instance_norm(in, gamma, beta, options.eps);
    return batched ? out : out.squeeze(0);
  });
}

LayerNorm::LayerNorm(const Shape& shape, const LayerNormOptions& norm_options)
    : normalized_shape(shape), options(norm_options) {
  if (options.elementwise_affine) gamma = parameter(shape);
  if (options.elementwise_affine && options.bias) beta = parameter(shape);
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return place.run("LayerNorm", [&] { return layer_norm(x, normalized_shape, gamma, beta, options.eps); });
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& norm_options)
    : num_groups(groups), num_channels(channels), options(norm_options) {
  require_positive("GroupNorm", "the number of groups", groups);
  if (channels % groups != 0)
    fail(Errc::invalid_argument, "GroupNorm", "{} channels cannot be split into {} groups", channels, groups);
  if (options.affine) {
    gamma = parameter({channels});
    beta = parameter({channels});
  }
}

Tensor GroupNorm::forward(const Tensor& x) const {
  return place.run("GroupNorm", [&] { return group_norm(x, num_groups, gamma, beta, options.eps); });
}

RMSNorm::RMSNorm(const Shape& shape, const RMSNormOptions& norm_options)
    : normalized_shape(shape), options(norm_options) {
  if (options.elementwise_affine) gamma = parameter(shape);
}

Tensor RMSNorm::forward(const Tensor& x) const {
  return place.run("RMSNorm", [&] { return rms_norm(x, normalized_shape, gamma, options.eps); });
}

Tensor LocalResponseNorm::forward(const Tensor& x) const {
  return place.run("LocalResponseNorm", [&] { return local_response_norm(x, size, alpha, beta, k); });
}

// As PyTorch computes it: the window of an even size is that of the odd one below, and the first channel is
// part of every window that lies beyond it.
Tensor CrossMapLRN2d::forward(const Tensor& x) const {
  return place.run("CrossMapLRN2d", [&] {
    require_positive("CrossMapLRN2d", "the size", size);
    if (x.rank() != 4)
      fail(Errc::shape_mismatch, "CrossMapLRN2d", "{} is not [batch, channels, height, width]",
           to_string(x.shape()));
    const std::int64_t reach = (size - 1) / 2;
    const std::int64_t seen = 2 * reach + 1;
    return ops::rounded_once(x, [&](const Tensor& v) {
      const std::int64_t channels = v.shape()[1];
      const Tensor squares = square(v);
      const Tensor padded = pad(squares.reshape({v.shape()[0], 1, channels, -1}), {0, 0, reach, reach});
      const Tensor sums = avg_pool(padded, {seen, 1}, {.stride = {1}}).reshape(v.shape()) * seen;
      const Tensor beyond = ge(arange(0, channels).reshape({channels, 1, 1}), reach + 1);
      const Tensor all = sums + where(beyond, squares.narrow(1, 0, 1), 0);
      return v / pow(all * (alpha / static_cast<double>(size)) + k, beta);
    });
  });
}

}  // namespace ballast::nn
