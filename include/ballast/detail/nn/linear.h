// SPDX-License-Identifier: Apache-2.0
// Linear maps. Native layout: Linear's weight is [in, out].
//
// Takes x whose last dimension is in_features. Gives: forward() the same with out_features there. Throws:
// constructors Errc::size_overflow for sizes below 0; forward() what linear() and bilinear() throw:
// Errc::shape_mismatch, bad_dtype, invalid_argument.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ballast/detail/nn/place.h"
#include "ballast/detail/ops/activation.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

struct LinearOptions {
  bool bias = true;
};

struct Linear {
  static constexpr LayerKind kind = LayerKind::linear;
  std::int64_t in_features;
  std::int64_t out_features;
  LinearOptions options;
  Tensor weight;  ///< [in, out]
  Tensor bias;    ///< [out], undefined without
  Place place;

  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});

  /// x [..., in] → [..., out], with the activation applied to the result.
  [[nodiscard]] Tensor forward(const Tensor& x, Activation activation = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  /// For load(): what an empty std::optional<Linear> may become, and how the file's shapes make it that.
  [[nodiscard]] static std::vector<Linear> without_sizes();
  bool take_sizes(std::span<const Shape> shapes);

  static constexpr void visit_fields(auto& self, auto&& visit) {
    visit("weight", self.weight);
    if (self.options.bias) visit("bias", self.bias);
  }
};

/// y = x1 A x2 + b.
struct Bilinear {
  static constexpr LayerKind kind = LayerKind::bilinear;
  std::int64_t in1_features;
  std::int64_t in2_features;
  std::int64_t out_features;
  LinearOptions options;
  Tensor weight;  ///< [out, in1, in2]
  Tensor bias;    ///< [out], undefined without
  Place place;

  Bilinear(std::int64_t in1, std::int64_t in2, std::int64_t out, const LinearOptions& options = {});

  [[nodiscard]] Tensor forward(const Tensor& x1, const Tensor& x2) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static std::vector<Bilinear> without_sizes();
  bool take_sizes(std::span<const Shape> shapes);

  static constexpr void visit_fields(auto& self, auto&& visit) {
    visit("weight", self.weight);
    if (self.options.bias) visit("bias", self.bias);
  }
};

struct Identity {
  [[nodiscard]] Tensor forward(const Tensor& x) const { return x; }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

}  // namespace ballast::nn

#pragma GCC visibility pop
