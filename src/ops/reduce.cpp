// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "ballast/detail/ops/elementwise.h"
#include "ops/args.h"
#include "ops/fold.h"
#include "ops/kernels.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast {

using ops::compute_dtype;
using ops::Folding;
using ops::form;
using ops::kernels;
using ops::Rows;
using ops::rows_along;

namespace {

// One value of T for every row of T.
template <class In, class Out, class Row>
Tensor each_row(const Rows& rows, DType dtype, const Row& row) {
  Tensor out = ops::new_tensor(dtype, {rows.count});
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

template <Folding which>
Tensor total_cpu(const Operation& op, const Tensor& x, const Dims& dims, bool keepdim) {
  return ops::folded(op.name, which, x, dims, keepdim).to(sum_dtype(x.dtype()));
}

template <Folding which>
Tensor extreme_cpu(const Operation& op, const Tensor& x, const Dims& dims, bool keepdim) {
  const Tensor best = ops::folded(op.name, which, x, dims, keepdim);
  if (x.numel() == 0 && best.numel() > 0)
    fail(Errc::shape_mismatch, op.name, "{} has no elements to choose from", form(x));
  return best.to(x.dtype());
}

template <Folding which>
Tensor truth_cpu(const Operation& op, const Tensor& x, const Dims& dims, bool keepdim) {
  return ops::folded(op.name, which, ne(x, 0), dims, keepdim);
}

template <class Beats>
Tensor place_cpu(const Operation& op, const Tensor& x, const Dims& dims, bool keepdim) {
  const Rows rows = rows_along(op.name, x, dims, compute_dtype(x.dtype()));
  if (rows.length == 0 && rows.count > 0)
    fail(Errc::shape_mismatch, op.name, "{} has no elements to choose from", form(x));
  const auto place = [&](const auto* in, std::int64_t n) { return best_place(in, n, Beats()); };
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

Tensor mean_cpu(const Operation& op, const Tensor& x, const Dims& dims, bool keepdim) {
  require_floating(op.name, x);
  const Tensor total = ops::folded(op.name, Folding::sum, x, dims, keepdim);
  const auto count = static_cast<double>(x.numel()) / static_cast<double>(total.numel());
  return div(total, Tensor::from({count}, {})).to(x.dtype());
}

Tensor logsumexp_cpu(const Operation& op, const Tensor& x, const Dims& dims, bool keepdim) {
  const Rows rows = floating_rows(op.name, x, dims);
  return finished(floating_reduced(rows, logsumexp_of<float>, logsumexp_of<double>), rows, keepdim,
                  x.dtype());
}

// The variance, or its root, which may lie inside the dtype where the variance does not.
template <bool root>
Tensor spread_cpu(const Operation& op, const Tensor& x, const Dims& dims, bool keepdim,
                  std::int64_t correction) {
  const Rows rows = floating_rows(op.name, x, dims);
  const double divisor = std::max(0.0, static_cast<double>(rows.length - correction));
  const auto one = [&](const auto* in, std::int64_t n) {
    const double variance = variance_of(in, n, divisor);
    return Float<decltype(in)>(root ? std::sqrt(variance) : variance);
  };
  return finished(floating_reduced(rows, one, one), rows, keepdim, x.dtype());
}

Tensor norm_cpu(const Operation& op, const Tensor& x, const Dims& dims, bool keepdim, double p) {
  const Rows rows = floating_rows(op.name, x, dims);
  if (rows.length == 0 && (p < 0 || std::isinf(p)) && rows.count > 0)
    fail(Errc::shape_mismatch, op.name, "{} has no elements", form(x));
  const auto floats = [&](const float* in, std::int64_t n) {
    return p == 2 ? static_cast<float>(std::sqrt(kernels().sum_squares(in, 0, n))) : norm_of(in, n, p);
  };
  const auto wide = [&](const double* in, std::int64_t n) { return norm_of(in, n, p); };
  return finished(floating_reduced(rows, floats, wide), rows, keepdim, x.dtype());
}

}  // namespace

namespace operations {

constinit const Reduction sum = {about("sum", {"x"}, {"dims", "keepdim"}, forms::sum),
                                 {total_cpu<Folding::sum>}};
constinit const Reduction prod = {about("prod", {"x"}, {"dims", "keepdim"}, forms::sum),
                                  {total_cpu<Folding::prod>}};
constinit const Reduction mean = {about("mean", {"x"}, {"dims", "keepdim"}, forms::mean), {mean_cpu}};
constinit const Reduction logsumexp = {about("logsumexp", {"x"}, {"dims", "keepdim"}, forms::mean),
                                       {logsumexp_cpu}};
constinit const Reduction max = {about("max", {"x"}, {"dims", "keepdim"}, forms::extreme),
                                 {extreme_cpu<Folding::max>}};
constinit const Reduction min = {about("min", {"x"}, {"dims", "keepdim"}, forms::extreme),
                                 {extreme_cpu<Folding::min>}};
constinit const Reduction any = {about("any", {"x"}, {"dims", "keepdim"}, forms::truth),
                                 {truth_cpu<Folding::max>}};
constinit const Reduction all = {about("all", {"x"}, {"dims", "keepdim"}, forms::truth),
                                 {truth_cpu<Folding::min>}};
constinit const Spread var = {about("var", {"x"}, {"dims", "keepdim", "correction"}, forms::mean),
                              {spread_cpu<false>}};
constinit const Spread stddev = {about("stddev", {"x"}, {"dims", "keepdim", "correction"}, forms::mean),
                                 {spread_cpu<true>}};
constinit const OperationOf<Tensor(const Tensor&, const Dims&, bool, double)> norm = {
    about("norm", {"x"}, {"dims", "keepdim", "p"}, forms::mean), {norm_cpu}};
constinit const Reduction argmax = {about("argmax", {"x"}, {"dims", "keepdim"}, forms::place),
                                    {place_cpu<std::greater<>>}};
constinit const Reduction argmin = {about("argmin", {"x"}, {"dims", "keepdim"}, forms::place),
                                    {place_cpu<std::less<>>}};

}  // namespace operations

Tensor sum(const Tensor& x, const Axes& dims, bool keepdim) {
  return run(operations::sum, x, dims, keepdim);
}

Tensor prod(const Tensor& x, const Axes& dims, bool keepdim) {
  return run(operations::prod, x, dims, keepdim);
}

Tensor mean(const Tensor& x, const Axes& dims, bool keepdim) {
  return run(operations::mean, x, dims, keepdim);
}

Tensor var(const Tensor& x, const Axes& dims, bool keepdim, std::int64_t correction) {
  return run(operations::var, x, dims, keepdim, correction);
}

Tensor stddev(const Tensor& x, const Axes& dims, bool keepdim, std::int64_t correction) {
  return run(operations::stddev, x, dims, keepdim, correction);
}

Tensor norm(const Tensor& x, double p, const Axes& dims, bool keepdim) {
  return run(operations::norm, x, dims, keepdim, p);
}

Tensor logsumexp(const Tensor& x, const Axes& dims, bool keepdim) {
  return run(operations::logsumexp, x, dims, keepdim);
}

Tensor max(const Tensor& x, const Axes& dims, bool keepdim) {
  return run(operations::max, x, dims, keepdim);
}

Tensor min(const Tensor& x, const Axes& dims, bool keepdim) {
  return run(operations::min, x, dims, keepdim);
}

Tensor argmax(const Tensor& x, std::optional<std::int64_t> dim, bool keepdim) {
  return run(operations::argmax, x, dim ? Dims{*dim} : Dims{}, keepdim);
}

Tensor argmin(const Tensor& x, std::optional<std::int64_t> dim, bool keepdim) {
  return run(operations::argmin, x, dim ? Dims{*dim} : Dims{}, keepdim);
}

Tensor any(const Tensor& x, const Axes& dims, bool keepdim) {
  return run(operations::any, x, dims, keepdim);
}

Tensor all(const Tensor& x, const Axes& dims, bool keepdim) {
  return run(operations::all, x, dims, keepdim);
}

}  // namespace ballast
