// SPDX-License-Identifier: Apache-2.0
// Normalisations. Native names: gamma scales, beta shifts.
//
// Gives: forward() a tensor of x's shape. Throws: constructors Errc::invalid_argument for groups that do not
// divide the channels; forward() shape_mismatch for an x without the dimensions the layer is for, bad_dtype
// as the functions of detail/ops/norm.h, invalid_argument for a size below 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "ballast/detail/nn/place.h"
#include "ballast/detail/ops/activation.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

namespace detail {
/// The tensors of a norm over batches or instances, as far as its options ask for them.
constexpr void visit_norm(auto& self, auto&& visit) {
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
}  // namespace detail

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: cumulative average
  bool affine = true;
  bool track_running_stats = true;
};

/// What BatchNorm1d, BatchNorm2d and BatchNorm3d are.
struct BatchNorm {
  static constexpr LayerKind kind = LayerKind::batch_norm;
  std::int64_t num_features;
  BatchNormOptions options;
  Tensor gamma;
  Tensor beta;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;  ///< I64 []
  Place place;

  BatchNorm(std::int64_t features, const BatchNormOptions& options = {});

  /// With the running statistics, or with x's own when there are none, and the activation applied to the
  /// result. x is [batch, features, size…].
  [[nodiscard]] Tensor forward(const Tensor& x, Activation activation = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  /// True after fuse() while the statistics are those it left: the layer before does the work.
  [[nodiscard]] bool folded() const noexcept {
    return folded_into != nullptr && folded_into == running_var.storage();
  }

  /// For copy(): the mark goes over to the copy's own statistics.
  void copied_from(const BatchNorm& original) {
    folded_into = original.folded() ? running_var.storage() : nullptr;
  }

  std::shared_ptr<const Storage> folded_into = {};  ///< fuse()'s mark: the storage of running_var it made

  static constexpr void visit_fields(auto& self, auto&& visit) { detail::visit_norm(self, visit); }
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

/// What InstanceNorm1d, InstanceNorm2d and InstanceNorm3d are.
struct InstanceNorm {
  static constexpr LayerKind kind = LayerKind::instance_norm;
  std::int64_t num_features;
  InstanceNormOptions options;
  Tensor gamma;
  Tensor beta;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;  ///< I64 []
  Place place;

  InstanceNorm(std::int64_t features, const InstanceNormOptions& options = {});

  /// x is [batch, features, size…], or the same without batch for the spatial dimensions of its kind.
  [[nodiscard]] Tensor forward(const Tensor& x, std::size_t spatial) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) { detail::visit_norm(self, visit); }
};

struct InstanceNorm1d : InstanceNorm {
  using InstanceNorm::InstanceNorm;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return InstanceNorm::forward(x, 1); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

struct InstanceNorm2d : InstanceNorm {
  using InstanceNorm::InstanceNorm;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return InstanceNorm::forward(x, 2); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

struct InstanceNorm3d : InstanceNorm {
  using InstanceNorm::InstanceNorm;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return InstanceNorm::forward(x, 3); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
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
  Place place;

  LayerNorm(std::int64_t size, const LayerNormOptions& norm_options = {})
      : LayerNorm(Shape{size}, norm_options) {}

  LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

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
  Place place;

  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options = {});

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

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
  Place place;

  RMSNorm(std::int64_t size, const RMSNormOptions& norm_options = {}) : RMSNorm(Shape{size}, norm_options) {}

  RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) {
    if (self.options.elementwise_affine) visit("gamma", self.gamma);
  }
};

struct LocalResponseNorm {
  std::int64_t size;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

/// As PyTorch computes it: an even size is the odd one below it, the first channel is in every window.
struct CrossMapLRN2d {
  std::int64_t size;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

/// activation(norm(layer(x))) for a convolution or Linear; one step when fuse() has folded the norm.
template <class Layer>
[[nodiscard]] Tensor conv_norm(const Layer& layer, const BatchNorm& norm, const Tensor& x,
                               Activation activation = {}) {
  if (norm.folded()) return layer.forward(x, activation);
  return norm.forward(layer.forward(x), activation);
}

}  // namespace ballast::nn

#pragma GCC visibility pop
