// SPDX-License-Identifier: Apache-2.0
// PyTorch's weight_norm stores a weight as length and direction.
#pragma once

#include "ballast/tensor.h"

namespace ballast {

/// g * v / |v|, where the norm is taken over all dimensions but the one g has (over everything when g has one
/// element). Computed when it is read.
[[nodiscard]] Tensor weight_norm(const Tensor& g, const Tensor& v);

}  // namespace ballast
