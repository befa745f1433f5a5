// SPDX-License-Identifier: Apache-2.0
// How large a convolution's results can be, and what may be done because of it (bounds.h).
#pragma once

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/cache.h"
#include "ballast/tensor.h"
#include "ops/conv_shapes.h"

namespace ballast::ops {

struct ConvCall {
  const char* op;
  const Tensor& weight;
  const Tensor& bias;
  Activation activation;
  OpCache* cache;
  bool transposed;
};

/// What is known of a call's results.
struct Expected {
  double bound;     ///< of their magnitudes, before the activation
  bool finite;      ///< no sum overflows
  bool by_patches;  ///< and none does in patches, which are worth it (winograd.h)
};

/// By what is known of x, or, where that keeps a step of oneDNN's or patches from being used, by its values.
[[nodiscard]] Expected expected(const ConvCall& call, const ConvShapes& shapes, const Tensor& x);

/// The bound of the results after the activation.
[[nodiscard]] double bound_after(const Expected& results, Activation activation);

}  // namespace ballast::ops
