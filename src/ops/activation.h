// SPDX-License-Identifier: Apache-2.0
// Activations for operations that end with one.
#pragma once

#include "ballast/detail/ops/activation.h"
#include "ops/kernels.h"

namespace ballast::ops {

struct ActivationKernel {
  Unary which;
  double p = 0;
  double q = 0;
};

[[nodiscard]] ActivationKernel kernel_of(Activation activation);
/// On F32 memory that is the operation's own.
void activate_in_place(Tensor& x, Activation activation);

}  // namespace ballast::ops
