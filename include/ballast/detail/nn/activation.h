// SPDX-License-Identifier: Apache-2.0
// Activations. PReLU is the only one with a parameter. Those with activation() can be applied by
// the layer before them: conv.forward(x, relu.activation()), which is what Sequential does.
//
// Takes x of any shape. Gives: forward() a tensor of x's shape (GLU halves a dimension). Throws: as nn.h
// says, forward() as the function of its name in ops.h: Errc::bad_dtype, shape_mismatch, invalid_argument.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ballast/detail/nn/place.h"
#include "ballast/detail/ops/activation.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

struct PReLU {
  static constexpr LayerKind kind = LayerKind::prelu;
  std::int64_t num_parameters;
  double init;   ///< first value of its numbers
  Tensor alpha;  ///< [num_parameters]
  Place place;

  PReLU() : PReLU(1) {}

  PReLU(std::int64_t parameters, double init = 0.25);

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  /// For load(), as in Linear.
  [[nodiscard]] static std::vector<PReLU> without_sizes();
  bool take_sizes(std::span<const Shape> shapes);

  void adjust_initial(std::string_view field, Tensor& value) const;

  BALLAST_FIELDS(alpha);
};

struct ReLU {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static Activation activation() { return Activation::Kind::relu; }

  BALLAST_FIELDS();
};

struct ReLU6 {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static Activation activation() { return Activation::Kind::relu6; }

  BALLAST_FIELDS();
};

struct SELU {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct SiLU {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static Activation activation() { return Activation::Kind::silu; }

  BALLAST_FIELDS();
};

struct Mish {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static Activation activation() { return Activation::Kind::mish; }

  BALLAST_FIELDS();
};

struct Sigmoid {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static Activation activation() { return Activation::Kind::sigmoid; }

  BALLAST_FIELDS();
};

struct LogSigmoid {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Tanh {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static Activation activation() { return Activation::Kind::tanh; }

  BALLAST_FIELDS();
};

struct Softsign {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Hardswish {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static Activation activation() { return Activation::Kind::hardswish; }

  BALLAST_FIELDS();
};

struct Hardsigmoid {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] static Activation activation() { return Activation::Kind::hardsigmoid; }

  BALLAST_FIELDS();
};

/// PyTorch's "none" and "tanh".
enum class GELUApproximation : std::uint8_t { none, tanh };

struct GELU {
  GELUApproximation approximate = GELUApproximation::none;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] Activation activation() const {
    return approximate == GELUApproximation::tanh ? Activation::Kind::gelu_tanh : Activation::Kind::gelu;
  }

  BALLAST_FIELDS();
};

struct LeakyReLU {
  double negative_slope = 0.01;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] Activation activation() const { return {Activation::Kind::leaky_relu, negative_slope}; }

  BALLAST_FIELDS();
};

/// As after eval(): the mean of both slopes.
struct RReLU {
  double lower = 1.0 / 8;
  double upper = 1.0 / 3;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct ELU {
  double alpha = 1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  [[nodiscard]] Activation activation() const { return {Activation::Kind::elu, alpha}; }

  BALLAST_FIELDS();
};

struct Hardtanh {
  double min_val = -1;
  double max_val = 1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Softplus {
  double beta = 1;
  double threshold = 20;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Softmax {
  std::int64_t dim = -1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct LogSoftmax {
  std::int64_t dim = -1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct CELU {
  double alpha = 1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Hardshrink {
  double lambda = 0.5;  ///< PyTorch's `lambd`: what is no further from 0 than this becomes 0
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Softshrink {
  double lambda = 0.5;  ///< PyTorch's `lambd`: what is no further from 0 than this becomes 0
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Tanhshrink {
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Threshold {
  double threshold;
  double value;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct GLU {
  std::int64_t dim = -1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Softmin {
  std::int64_t dim = -1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

}  // namespace ballast::nn

#pragma GCC visibility pop
