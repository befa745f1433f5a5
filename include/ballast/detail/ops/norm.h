// SPDX-License-Identifier: Apache-2.0
// Normalisations. gamma scales, beta shifts; either may be undefined.
//
// Gives: x's shape and dtype; distances and similarities have no `dim`, pdist() is a list. Throws:
// Errc::shape_mismatch for parameters of another size, and an x without the dimensions that are meant;
// bad_dtype for integers (pairwise_distance() takes them), and for F64 in batch_norm(), layer_norm(),
// rms_norm(), group_norm(), instance_norm() and local_response_norm(); invalid_argument for groups or a size
// below 1.
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

/// Every value divided by what its neighbours in dimension 1 make: (k + alpha * mean of squares) ^ beta.
[[nodiscard]] Tensor local_response_norm(const Tensor& x, std::int64_t size, double alpha = 1e-4,
                                         double beta = 0.75, double k = 1);

/// x / max(norm of `dim`, eps).
[[nodiscard]] Tensor normalize(const Tensor& x, double p = 2, std::int64_t dim = 1, double eps = 1e-12);
/// a b / (max(|a|, eps) max(|b|, eps)) along a dimension, with broadcasting.
[[nodiscard]] Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim = 1,
                                       double eps = 1e-8);
/// The p-norm of a - b + eps along the last dimension.
[[nodiscard]] Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6,
                                       bool keepdim = false);

/// Of every two rows of x [rows, features], the first with all after it, then the second, …: the p-norm of
/// their difference.
[[nodiscard]] Tensor pdist(const Tensor& x, double p = 2);

}  // namespace ballast

#pragma GCC visibility pop
