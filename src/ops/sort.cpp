// SPDX-License-Identifier: Apache-2.0
// Order along a dimension: sort, topk; running sums and products.
#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "ballast/detail/ops/reduce.h"
#include "ops/args.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast {
namespace {

using ops::Rows;

// NaN is larger than everything.
template <class T>
bool before(T a, T b, bool descending) {
  const bool a_nan = a != a;
  const bool b_nan = b != b;
  if (a_nan || b_nan) return descending ? a_nan && !b_nan : b_nan && !a_nan;
  return descending ? a > b : a < b;
}

struct Order {
  std::int64_t count;  // how many of a row are wanted
  bool descending;
};

template <class T>
void order_rows(const Rows& rows, const Order& order, Tensor& values, Tensor& indices) {
  const T* in = reinterpret_cast<const T*>(rows.values.data());
  T* value = reinterpret_cast<T*>(values.mutable_data());
  auto* index = reinterpret_cast<std::int64_t*>(indices.mutable_data());
  ops::parallel(rows.count, ops::rows_per_thread(rows.length * 16),
                [&](std::int64_t begin, std::int64_t end) {
                  std::vector<std::int64_t> places(static_cast<std::size_t>(rows.length));
                  for (std::int64_t i = begin; i < end; ++i) {
                    const T* row = in + i * rows.length;
                    std::iota(places.begin(), places.end(), 0);
                    // The place settles ties, which makes the order stable.
                    const auto less = [&](std::int64_t a, std::int64_t b) {
                      if (before(row[a], row[b], order.descending)) return true;
                      return !before(row[b], row[a], order.descending) && a < b;
                    };
                    std::partial_sort(places.begin(), places.begin() + order.count, places.end(), less);
                    for (std::int64_t k = 0; k < order.count; ++k) {
                      index[i * order.count + k] = places[static_cast<std::size_t>(k)];
                      value[i * order.count + k] = row[places[static_cast<std::size_t>(k)]];
                    }
                  }
                });
}

std::array<Tensor, 2> ordered_cpu(const Operation& op, const Tensor& x, std::int64_t dim, std::int64_t count,
                                  bool descending) {
  const Order order{count, descending};
  const Rows rows = ops::rows_along(op.name, x, {dim}, ops::compute_dtype(x.dtype()));
  Tensor values = Tensor::empty(rows.values.dtype(), {rows.count, order.count});
  Tensor indices = Tensor::empty(DType::i64, {rows.count, order.count});
  if (values.numel() > 0) {
    if (values.dtype() == DType::f32)
      order_rows<float>(rows, order, values, indices);
    else if (values.dtype() == DType::f64)
      order_rows<double>(rows, order, values, indices);
    else
      order_rows<std::int64_t>(rows, order, values, indices);
  }
  const std::size_t axis = ops::axis_of(op.name, dim, x);
  return {ops::back_in_place(values.to(x.dtype()), x, axis), ops::back_in_place(indices, x, axis)};
}

// Running sums, or products.
template <class T>
void run_along(const Rows& rows, bool product, Tensor& out) {
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  const T* in = reinterpret_cast<const T*>(rows.values.data());
  T* to = reinterpret_cast<T*>(out.mutable_data());
  for (std::int64_t i = 0; i < rows.count; ++i) {
    Total total = product ? 1 : 0;
    for (std::int64_t k = 0; k < rows.length; ++k) {
      const auto next = static_cast<Total>(in[i * rows.length + k]);
      total = product ? total * next : total + next;
      to[i * rows.length + k] = static_cast<T>(total);
    }
  }
}

Sorted sorted(std::array<Tensor, 2> both) {
  return {std::move(both[0]), std::move(both[1])};
}

template <bool product>
Tensor running_cpu(const Operation& op, const Tensor& x, std::int64_t dim) {
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::i64;
  const Rows rows = ops::rows_along(op.name, x, {dim}, ops::compute_dtype(dtype));
  Tensor out = Tensor::empty(rows.values.dtype(), {rows.count, rows.length});
  if (out.numel() > 0) {
    if (out.dtype() == DType::f32)
      run_along<float>(rows, product, out);
    else if (out.dtype() == DType::f64)
      run_along<double>(rows, product, out);
    else
      run_along<std::int64_t>(rows, product, out);
  }
  return ops::back_in_place(out, x, ops::axis_of(op.name, dim, x)).to(dtype);
}

}  // namespace

namespace operations {

constinit const Along cumsum = {about("cumsum", {"x"}, {"dim"}, forms::cumsum), {running_cpu<false>}};
constinit const Along cumprod = {about("cumprod", {"x"}, {"dim"}, forms::cumsum), {running_cpu<true>}};
constinit const Ordering sort = {about("sort", {"x"}, {"dim", "count", "descending"}, forms::ordered),
                                 {ordered_cpu}};
constinit const Ordering topk = {about("topk", {"x"}, {"dim", "count", "descending"}, forms::ordered),
                                 {ordered_cpu}};

}  // namespace operations

Sorted sort(const Tensor& x, std::int64_t dim, bool descending) {
  const std::size_t axis = ops::axis_of("sort", dim, x);
  return sorted(run(operations::sort, x, dim, x.rank() == 0 ? 1 : x.shape()[axis], descending));
}

Sorted topk(const Tensor& x, std::int64_t k, std::int64_t dim, bool largest) {
  const std::size_t axis = ops::axis_of("topk", dim, x);
  if (k < 0 || k > (x.rank() == 0 ? 1 : x.shape()[axis]))
    fail(Errc::shape_mismatch, "topk", "{} has no {} elements in dimension {}", ops::form(x), k, axis);
  return sorted(run(operations::topk, x, dim, x.rank() == 0 ? 1 : k, largest));
}

Tensor cumsum(const Tensor& x, std::int64_t dim) {
  return run(operations::cumsum, x, dim);
}

Tensor cumprod(const Tensor& x, std::int64_t dim) {
  return run(operations::cumprod, x, dim);
}

Tensor argsort(const Tensor& x, std::int64_t dim, bool descending) {
  return sort(x, dim, descending).indices;
}

}  // namespace ballast
