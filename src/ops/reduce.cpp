// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ballast/detail/ops/elementwise.h"
#include "ops/args.h"
#include "ops/fold.h"
#include "ops/kernels.h"
#include "ops/parallel.h"
#include "ops/rows.h"
#include "tensor/trace.h"

namespace ballast {

using ops::compute_dtype;
using ops::Folding;
using ops::form;
using ops::kernels;
using ops::Rows;
using ops::rows_along;

namespace {

// A reduction as a trace sees it.
template <class Work>
Tensor recorded(const char* op, const Tensor& x, const Dims& dims, bool keepdim, const Work& run) {
  return tracing::record(op, {x}, {{"dims", dims}, {"keepdim", std::int64_t{keepdim}}}, run);
}

// One value of T for every row of T.
template <class In, class Out, class Row>
Tensor each_row(const Rows& rows, DType dtype, const Row& row) {
  Tensor out = Tensor::empty(dtype, {rows.count});
  if (rows.count == 0) return out;
  const In* in = reinterpret_cast<const In*>(rows.values.data());
  Out* to = reinterpret_cast<Out*>(out.mutable_data());
  ops::parallel(rows.count, ops::rows_per_thread(rows.length), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = row(in + i * rows.length, rows.length);
  });
  return out;
}

Tensor finished(const Tensor& values, const Rows& rows, bool keepdim, DType dtype) {
  return values.reshape(rows.result(keepdim)).to(dtype);
}

DType sum_dtype(DType dtype) {
  return is_floating(dtype) ? dtype : DType::i64;
}

double plain_sum(const double* in, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += in[i];
  return total;
}

// The place of the first value that `beats` all before it; NaN beats everything.
template <class T, class Beats>
std::int64_t best_place(const T* in, std::int64_t n, Beats beats) {
  std::int64_t best = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (in[i] != in[i]) return i;
    if (beats(in[i], in[best])) best = i;
  }
  return best;
}

Tensor extreme(const char* op, ops::Folding which, const Tensor& x, const Dims& dims, bool keepdim) {
  Tensor best = ops::folded(op, which, x, dims, keepdim);
  if (x.numel() == 0 && best.numel() > 0)
    fail(Errc::shape_mismatch, op, "{} has no elements to choose from", form(x));
  return best.to(x.dtype());
}

template <class Beats>
Tensor place_of_extreme(const char* op, const Tensor& x, std::optional<std::int64_t> dim, bool keepdim,
                        Beats beats) {
  if (tracing::on())
    return recorded(op, x, dim ? Dims{*dim} : Dims{}, keepdim,
                    [&] { return place_of_extreme(op, x, dim, keepdim, beats); });
  const Rows rows = rows_along(op, x, dim ? Dims{*dim} : Dims{}, compute_dtype(x.dtype()));
  if (rows.length == 0 && rows.count > 0)
    fail(Errc::shape_mismatch, op, "{} has no elements to choose from", form(x));
  const auto place = [&](const auto* in, std::int64_t n) { return best_place(in, n, beats); };
  Tensor out;
  if (rows.values.dtype() == DType::f32)
    out = each_row<float, std::int64_t>(rows, DType::i64, place);
  else if (rows.values.dtype() == DType::f64)
    out = each_row<double, std::int64_t>(rows, DType::i64, place);
  else
    out = each_row<std::int64_t, std::int64_t>(rows, DType::i64, place);
  return out.reshape(rows.result(keepdim));
}

void require_floating(const char* op, const Tensor& x) {
  ops::require_computable(op, x);
  if (!is_floating(x.dtype()))
    fail(Errc::bad_dtype, op, "needs a floating dtype, not {}; use to() first", form(x));
}

// Floating values in F32 or F64.
Rows floating_rows(const char* op, const Tensor& x, const Dims& dims) {
  require_floating(op, x);
  return rows_along(op, x, dims, compute_dtype(x.dtype()));
}

template <class Floats, class Wide>
Tensor floating_reduced(const Rows& rows, Floats floats, Wide wide) {
  if (rows.values.dtype() == DType::f32) return each_row<float, float>(rows, DType::f32, floats);
  return each_row<double, double>(rows, DType::f64, wide);
}

// The type of a row's elements.
template <class Pointer>
using Float = std::remove_const_t<std::remove_pointer_t<Pointer>>;

double variance_of(const float* in, std::int64_t n, double divisor) {
  return kernels().sum_squares(in, kernels().sum(in, n) / static_cast<double>(n), n) / divisor;
}

double variance_of(const double* in, std::int64_t n, double divisor) {
  const double mean = plain_sum(in, n) / static_cast<double>(n);
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += (in[i] - mean) * (in[i] - mean);
  return total / divisor;
}

template <class T>
T norm_of(const T* in, std::int64_t n, double p) {
  double total = p == -std::numeric_limits<double>::infinity() ? -p : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = std::abs(static_cast<double>(in[i]));
    if (p == 0)
      total += a != 0 ? 1 : 0;  // NaN too: it is counted, not added
    else if (std::isnan(a))
      return static_cast<T>(a);
    else if (p == 1)
      total += a;
    else if (p == 2)
      total += a * a;
    else if (std::isinf(p))
      total = p > 0 ? std::max(total, a) : std::min(total, a);
    else
      total += std::pow(a, p);
  }
  if (p == 0 || p == 1 || std::isinf(p)) return static_cast<T>(total);
  return static_cast<T>(p == 2 ? std::sqrt(total) : std::pow(total, 1 / p));
}

template <class T>
T logsumexp_of(const T* in, std::int64_t n) {
  double top = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < n; ++i) top = std::max(top, static_cast<double>(in[i]));
  if (std::isinf(top)) top = 0;
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += std::exp(static_cast<double>(in[i]) - top);
  return static_cast<T>(std::log(total) + top);
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& dims, bool keepdim) {
  if (tracing::on()) return recorded("sum", x, dims, keepdim, [&] { return sum(x, dims, keepdim); });
  return ops::folded("sum", Folding::sum, x, dims, keepdim).to(sum_dtype(x.dtype()));
}

Tensor prod(const Tensor& x, const Axes& dims, bool keepdim) {
  if (tracing::on()) return recorded("prod", x, dims, keepdim, [&] { return prod(x, dims, keepdim); });
  return ops::folded("prod", Folding::prod, x, dims, keepdim).to(sum_dtype(x.dtype()));
}

Tensor mean(const Tensor& x, const Axes& dims, bool keepdim) {
  if (tracing::on()) return recorded("mean", x, dims, keepdim, [&] { return mean(x, dims, keepdim); });
  require_floating("mean", x);
  const Tensor total = ops::folded("mean", Folding::sum, x, dims, keepdim);
  const auto count = static_cast<double>(x.numel()) / static_cast<double>(total.numel());
  return div(total, Tensor::from({count}, {})).to(x.dtype());
}

Tensor var(const Tensor& x, const Axes& dims, bool keepdim, std::int64_t correction) {
  if (tracing::on())
    return tracing::record("var", {x},
                           {{"dims", dims}, {"keepdim", std::int64_t{keepdim}}, {"correction", correction}},
                           [&] { return var(x, dims, keepdim, correction); });
  const Rows rows = floating_rows("var", x, dims);
  const double divisor = std::max(0.0, static_cast<double>(rows.length - correction));
  const auto one = [&](const auto* in, std::int64_t n) {
    return Float<decltype(in)>(variance_of(in, n, divisor));
  };
  return finished(floating_reduced(rows, one, one), rows, keepdim, x.dtype());
}

Tensor stddev(const Tensor& x, const Axes& dims, bool keepdim, std::int64_t correction) {
  require_floating("stddev", x);
  if (tracing::on())
    return sqrt(var(x.to(compute_dtype(x.dtype())), dims, keepdim, correction)).to(x.dtype());
  const Rows rows = floating_rows("stddev", x, dims);
  const double divisor = std::max(0.0, static_cast<double>(rows.length - correction));
  // The variance may lie outside the dtype where its root does not.
  const auto one = [&](const auto* in, std::int64_t n) {
    return Float<decltype(in)>(std::sqrt(variance_of(in, n, divisor)));
  };
  return finished(floating_reduced(rows, one, one), rows, keepdim, x.dtype());
}

Tensor norm(const Tensor& x, double p, const Axes& dims, bool keepdim) {
  if (tracing::on())
    return tracing::record("norm", {x}, {{"dims", dims}, {"keepdim", std::int64_t{keepdim}}, {"p", p}},
                           [&] { return norm(x, p, dims, keepdim); });
  const Rows rows = floating_rows("norm", x, dims);
  if (rows.length == 0 && (p < 0 || std::isinf(p)) && rows.count > 0)
    fail(Errc::shape_mismatch, "norm", "{} has no elements", form(x));
  const auto floats = [&](const float* in, std::int64_t n) {
    return p == 2 ? static_cast<float>(std::sqrt(kernels().sum_squares(in, 0, n))) : norm_of(in, n, p);
  };
  const auto wide = [&](const double* in, std::int64_t n) { return norm_of(in, n, p); };
  return finished(floating_reduced(rows, floats, wide), rows, keepdim, x.dtype());
}

Tensor logsumexp(const Tensor& x, const Axes& dims, bool keepdim) {
  if (tracing::on())
    return recorded("logsumexp", x, dims, keepdim, [&] { return logsumexp(x, dims, keepdim); });
  const Rows rows = floating_rows("logsumexp", x, dims);
  return finished(floating_reduced(rows, logsumexp_of<float>, logsumexp_of<double>), rows, keepdim,
                  x.dtype());
}

Tensor max(const Tensor& x, const Axes& dims, bool keepdim) {
  if (tracing::on()) return recorded("max", x, dims, keepdim, [&] { return max(x, dims, keepdim); });
  return extreme("max", Folding::max, x, dims, keepdim);
}

Tensor min(const Tensor& x, const Axes& dims, bool keepdim) {
  if (tracing::on()) return recorded("min", x, dims, keepdim, [&] { return min(x, dims, keepdim); });
  return extreme("min", Folding::min, x, dims, keepdim);
}

Tensor argmax(const Tensor& x, std::optional<std::int64_t> dim, bool keepdim) {
  return place_of_extreme("argmax", x, dim, keepdim, [](auto a, auto b) { return a > b; });
}

Tensor argmin(const Tensor& x, std::optional<std::int64_t> dim, bool keepdim) {
  return place_of_extreme("argmin", x, dim, keepdim, [](auto a, auto b) { return a < b; });
}

Tensor any(const Tensor& x, const Axes& dims, bool keepdim) {
  if (tracing::on()) return recorded("any", x, dims, keepdim, [&] { return any(x, dims, keepdim); });
  return ops::folded("any", Folding::max, ne(x, 0), dims, keepdim);
}

Tensor all(const Tensor& x, const Axes& dims, bool keepdim) {
  if (tracing::on()) return recorded("all", x, dims, keepdim, [&] { return all(x, dims, keepdim); });
  return ops::folded("all", Folding::min, ne(x, 0), dims, keepdim);
}

}  // namespace ballast
