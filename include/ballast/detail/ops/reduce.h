// SPDX-License-Identifier: Apache-2.0
// Reductions over some dimensions, or all of them when none are named. With keepdim the reduced dimensions
// stay, of size 1.
//
// Gives: x's dtype unless said otherwise; running sums, sort() and argsort() have x's shape. Throws:
// Errc::shape_mismatch for a dimension that is not there, max(), min(), argmax() and argmin() of no elements,
// and a `k` of topk() beyond the dimension; bad_dtype unless floating for mean(), var(), stddev(), norm() and
// logsumexp(); invalid_argument for a dimension named twice, and an undefined operand. Sums of floating
// values are made in F32 (F64 of F64) in an order that does not depend on the threads.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// The dimensions to reduce: sum(x, {0, 2}), sum(x, -1), or none named, which means all. Negative ones count
/// from the last.
struct Axes : Dims {
  /// All dimensions.
  Axes() = default;

  /// These; none of them: all.
  Axes(std::initializer_list<std::int64_t> dims) : Dims(dims) {}

  /// The same of a list that was made elsewhere.
  Axes(Dims dims) : Dims(std::move(dims)) {}  // a list made elsewhere

  /// One dimension.
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Axes(Number dim) : Dims{static_cast<std::int64_t>(dim)} {}
};

/// Integers and BOOL are summed in I64.
[[nodiscard]] Tensor sum(const Tensor& x, const Axes& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor prod(const Tensor& x, const Axes& dims = {}, bool keepdim = false);
/// Floating dtypes only, as in PyTorch.
[[nodiscard]] Tensor mean(const Tensor& x, const Axes& dims = {}, bool keepdim = false);
/// `correction` is 1 for the unbiased estimate.
[[nodiscard]] Tensor var(const Tensor& x, const Axes& dims = {}, bool keepdim = false,
                         std::int64_t correction = 1);
[[nodiscard]] Tensor stddev(const Tensor& x, const Axes& dims = {}, bool keepdim = false,
                            std::int64_t correction = 1);
/// The p-norm; p may be infinite or 0 (which counts what is not 0, NaN too).
[[nodiscard]] Tensor norm(const Tensor& x, double p = 2, const Axes& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor logsumexp(const Tensor& x, const Axes& dims = {}, bool keepdim = false);
/// NaN when there is one. Of no elements they are an error.
[[nodiscard]] Tensor max(const Tensor& x, const Axes& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor min(const Tensor& x, const Axes& dims = {}, bool keepdim = false);
/// I64. The first NaN, else the first of the largest; without a dimension, the place in row-major order.
[[nodiscard]] Tensor argmax(const Tensor& x, std::optional<std::int64_t> dim = {}, bool keepdim = false);
[[nodiscard]] Tensor argmin(const Tensor& x, std::optional<std::int64_t> dim = {}, bool keepdim = false);
/// BOOL.
[[nodiscard]] Tensor any(const Tensor& x, const Axes& dims = {}, bool keepdim = false);
[[nodiscard]] Tensor all(const Tensor& x, const Axes& dims = {}, bool keepdim = false);

/// Running sums along a dimension.
[[nodiscard]] Tensor cumsum(const Tensor& x, std::int64_t dim);
[[nodiscard]] Tensor cumprod(const Tensor& x, std::int64_t dim);

/// What sort() and topk() give.
struct Sorted {
  Tensor values;   ///< of x's dtype
  Tensor indices;  ///< I64
};

/// Stable. NaN is larger than everything.
[[nodiscard]] Sorted sort(const Tensor& x, std::int64_t dim = -1, bool descending = false);
/// The indices of sort().
[[nodiscard]] Tensor argsort(const Tensor& x, std::int64_t dim = -1, bool descending = false);
/// The k largest (or smallest) of a dimension, in order.
[[nodiscard]] Sorted topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1, bool largest = true);

}  // namespace ballast

#pragma GCC visibility pop
