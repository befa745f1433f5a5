// SPDX-License-Identifier: Apache-2.0
// Activations for operations that end with one.
#pragma once

#include "ballast/detail/ops/activation.h"
#include "ops/kernels.h"

namespace ballast::ops {

/// PyTorch's.
inline constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;

struct ActivationKernel {
  Unary which;
  double p = 0;
  double q = 0;
};

[[nodiscard]] ActivationKernel kernel_of(Activation activation);
/// On F32 memory that is the operation's own.
void activate_in_place(Tensor& x, Activation activation);

}  // namespace ballast::ops
