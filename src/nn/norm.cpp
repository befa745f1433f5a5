// SPDX-License-Identifier: Apache-2.0
#include "ballast/nn/norm.h"

#include "nn/parameters.h"

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

}  // namespace

BatchNorm::BatchNorm(std::int64_t features, const BatchNormOptions& norm_options)
    : num_features(features), options(norm_options) {
  make_running_norm(*this);
}

InstanceNorm::InstanceNorm(std::int64_t features, const InstanceNormOptions& norm_options)
    : num_features(features), options(norm_options) {
  make_running_norm(*this);
}

LayerNorm::LayerNorm(const Shape& shape, const LayerNormOptions& norm_options)
    : normalized_shape(shape), options(norm_options) {
  if (options.elementwise_affine) gamma = parameter(shape);
  if (options.elementwise_affine && options.bias) beta = parameter(shape);
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

RMSNorm::RMSNorm(const Shape& shape, const RMSNormOptions& norm_options)
    : normalized_shape(shape), options(norm_options) {
  if (options.elementwise_affine) gamma = parameter(shape);
}

}  // namespace ballast::nn
