// SPDX-License-Identifier: Apache-2.0
// Normalisations. Native names: gamma scales, beta shifts.
#pragma once

#include <cstdint>
#include <optional>

#include "ballast/module.h"

namespace ballast::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: cumulative average
  bool affine = true;
  bool track_running_stats = true;
};

struct BatchNorm {
  static constexpr LayerKind kind = LayerKind::batch_norm;
  std::int64_t num_features;
  BatchNormOptions options;
  Tensor gamma;
  Tensor beta;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;  ///< I64 []

  BatchNorm(std::int64_t features,
            const BatchNormOptions& options = {});  // NOLINT(google-explicit-constructor)

  static constexpr void visit_fields(auto& self, auto&& visit) {
    if (self.options.affine) {
      visit("gamma", self.gamma);
      visit("beta", self.beta);
    }
    if (self.options.track_running_stats) {
      visit("running_mean", self.running_mean);
      visit("running_var", self.running_var);
      visit("num_batches_tracked", self.num_batches_tracked);
    }
  }
};

struct BatchNorm1d : BatchNorm {
  using BatchNorm::BatchNorm;
};

struct BatchNorm2d : BatchNorm {
  using BatchNorm::BatchNorm;
};

struct BatchNorm3d : BatchNorm {
  using BatchNorm::BatchNorm;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
};

struct InstanceNorm {
  static constexpr LayerKind kind = LayerKind::instance_norm;
  std::int64_t num_features;
  InstanceNormOptions options;
  Tensor gamma;
  Tensor beta;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;

  InstanceNorm(std::int64_t features,
               const InstanceNormOptions& options = {});  // NOLINT(google-explicit-constructor)

  static constexpr void visit_fields(auto& self, auto&& visit) {
    if (self.options.affine) {
      visit("gamma", self.gamma);
      visit("beta", self.beta);
    }
    if (self.options.track_running_stats) {
      visit("running_mean", self.running_mean);
      visit("running_var", self.running_var);
      visit("num_batches_tracked", self.num_batches_tracked);
    }
  }
};

struct InstanceNorm1d : InstanceNorm {
  using InstanceNorm::InstanceNorm;
};

struct InstanceNorm2d : InstanceNorm {
  using InstanceNorm::InstanceNorm;
};

struct InstanceNorm3d : InstanceNorm {
  using InstanceNorm::InstanceNorm;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
};

struct LayerNorm {
  static constexpr LayerKind kind = LayerKind::layer_norm;
  Shape normalized_shape;
  LayerNormOptions options;
  Tensor gamma;
  Tensor beta;

  LayerNorm(std::int64_t size, const LayerNormOptions& norm_options = {})
      : LayerNorm(Shape{size}, norm_options) {}  // NOLINT(google-explicit-constructor)

  LayerNorm(const Shape& normalized_shape,
            const LayerNormOptions& options = {});  // NOLINT(google-explicit-constructor)

  static constexpr void visit_fields(auto& self, auto&& visit) {
    if (self.options.elementwise_affine) visit("gamma", self.gamma);
    if (self.options.elementwise_affine && self.options.bias) visit("beta", self.beta);
  }
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};

struct GroupNorm {
  static constexpr LayerKind kind = LayerKind::group_norm;
  std::int64_t num_groups;
  std::int64_t num_channels;
  GroupNormOptions options;
  Tensor gamma;
  Tensor beta;

  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options = {});

  static constexpr void visit_fields(auto& self, auto&& visit) {
    if (self.options.affine) {
      visit("gamma", self.gamma);
      visit("beta", self.beta);
    }
  }
};

struct RMSNormOptions {
  std::optional<double> eps = {};  ///< none: the smallest step of the input's dtype
  bool elementwise_affine = true;
};

struct RMSNorm {
  static constexpr LayerKind kind = LayerKind::rms_norm;
  Shape normalized_shape;
  RMSNormOptions options;
  Tensor gamma;

  RMSNorm(std::int64_t size, const RMSNormOptions& norm_options = {})
      : RMSNorm(Shape{size}, norm_options) {}  // NOLINT(google-explicit-constructor)

  RMSNorm(const Shape& normalized_shape,
          const RMSNormOptions& options = {});  // NOLINT(google-explicit-constructor)

  static constexpr void visit_fields(auto& self, auto&& visit) {
    if (self.options.elementwise_affine) visit("gamma", self.gamma);
  }
};

}  // namespace ballast::nn
