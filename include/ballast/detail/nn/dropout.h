// SPDX-License-Identifier: Apache-2.0
// Dropouts.
//
// Takes x of any shape. Gives: forward() x itself, as PyTorch's do after eval(). Throws: nothing: forward()
// gives x itself.
#pragma once

#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

// Dropping out belongs to training; here they pass on what they get.
struct Dropout {
  double p = 0.5;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return x; }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Dropout1d {
  double p = 0.5;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return x; }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Dropout2d {
  double p = 0.5;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return x; }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct Dropout3d {
  double p = 0.5;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return x; }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct AlphaDropout {
  double p = 0.5;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return x; }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct FeatureAlphaDropout {
  double p = 0.5;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return x; }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

}  // namespace ballast::nn

#pragma GCC visibility pop
