// SPDX-License-Identifier: Apache-2.0
// What losses have in common.
#pragma once

#include "ballast/detail/ops/loss.h"
#include "ballast/detail/ops/reduce.h"
#include "ops/args.h"

namespace ballast::ops {

/// Of all losses what the caller asked for, in `dtype`.
[[nodiscard]] Tensor reduced_loss(const char* op, const Tensor& losses, LossReduction reduction, DType dtype);

/// Refuses a reduction that is not this loss's.
void require_reduction(const char* op, LossReduction reduction);

/// The dtype both make, which must be floating.
[[nodiscard]] DType loss_dtype(const char* op, const Tensor& x, const Tensor& target);

void require_same_shape(const char* op, const Tensor& x, const Tensor& target);

}  // namespace ballast::ops
