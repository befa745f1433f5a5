// SPDX-License-Identifier: Apache-2.0
// Normalisations. gamma scales, beta shifts; either may be undefined.
#pragma once

#include <cstdint>
#include <optional>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// With given statistics, one for each channel (dimension 1).
[[nodiscard]] Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance,
                                const Tensor& gamma = {}, const Tensor& beta = {}, double eps = 1e-5);
/// Over the last dimensions, which must be `normalized`.
[[nodiscard]] Tensor layer_norm(const Tensor& x, const Shape& normalized, const Tensor& gamma = {},
                                const Tensor& beta = {}, double eps = 1e-5);
/// Without centring. eps: the smallest step of the input's dtype at 1 when absent.
[[nodiscard]] Tensor rms_norm(const Tensor& x, const Shape& normalized, const Tensor& gamma = {},
                              std::optional<double> eps = {});
[[nodiscard]] Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& gamma = {},
                                const Tensor& beta = {}, double eps = 1e-5);
/// Over the spatial dimensions of x [batch, channels, size…].
[[nodiscard]] Tensor instance_norm(const Tensor& x, const Tensor& gamma = {}, const Tensor& beta = {},
                                   double eps = 1e-5);

}  // namespace ballast

#pragma GCC visibility pop
