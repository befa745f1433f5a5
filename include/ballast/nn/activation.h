// SPDX-License-Identifier: Apache-2.0
// Activations and dropout. PReLU is the only one with a parameter.
#pragma once

#include <cstdint>

#include "ballast/module.h"

namespace ballast::nn {

struct PReLUOptions {
  double init = 0.25;
};

struct PReLU {
  static constexpr LayerKind kind = LayerKind::prelu;
  std::int64_t num_parameters;
  PReLUOptions options;
  Tensor alpha;  ///< [num_parameters]

  PReLU() : PReLU(1) {}

  PReLU(std::int64_t parameters, const PReLUOptions& options = {});  // NOLINT(google-explicit-constructor)
  BALLAST_FIELDS(alpha);
};

struct ReLU {
  BALLAST_FIELDS();
};

struct ReLU6 {
  BALLAST_FIELDS();
};

struct SELU {
  BALLAST_FIELDS();
};

struct SiLU {
  BALLAST_FIELDS();
};

struct Mish {
  BALLAST_FIELDS();
};

struct Sigmoid {
  BALLAST_FIELDS();
};

struct LogSigmoid {
  BALLAST_FIELDS();
};

struct Tanh {
  BALLAST_FIELDS();
};

struct Softsign {
  BALLAST_FIELDS();
};

struct Hardswish {
  BALLAST_FIELDS();
};

struct Hardsigmoid {
  BALLAST_FIELDS();
};

enum class GELUApproximation : std::uint8_t { none, tanh };

struct GELU {
  GELUApproximation approximate = GELUApproximation::none;
  BALLAST_FIELDS();
};

struct LeakyReLU {
  double negative_slope = 0.01;
  BALLAST_FIELDS();
};

struct ELU {
  double alpha = 1;
  BALLAST_FIELDS();
};

struct Hardtanh {
  double min_val = -1;
  double max_val = 1;
  BALLAST_FIELDS();
};

struct Softplus {
  double beta = 1;
  double threshold = 20;
  BALLAST_FIELDS();
};

struct Softmax {
  std::int64_t dim = -1;
  BALLAST_FIELDS();
};

struct LogSoftmax {
  std::int64_t dim = -1;
  BALLAST_FIELDS();
};

struct Dropout {
  double p = 0.5;
  BALLAST_FIELDS();
};

struct Dropout1d {
  double p = 0.5;
  BALLAST_FIELDS();
};

struct Dropout2d {
  double p = 0.5;
  BALLAST_FIELDS();
};

struct Dropout3d {
  double p = 0.5;
  BALLAST_FIELDS();
};

}  // namespace ballast::nn
