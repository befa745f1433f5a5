// SPDX-License-Identifier: Apache-2.0
// Movement made of other operations: choice by value, diagonals, grids.
#include <algorithm>
#include <vector>

#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ops/args.h"
#include "ops/counting.h"
#include "ops/operations.h"

namespace ballast {
namespace {

// Of n and one dimension more, the elements `step` apart from `first` on.
Tensor each_nth(const Tensor& flat, std::int64_t first, std::int64_t count, std::int64_t step) {
  return flat.index({Slice{first, first + (count - 1) * step + 1, step}});
}

Tensor diagonal_of(const Tensor& x, std::int64_t diagonal) {
  const std::int64_t rows = x.shape()[0];
  const std::int64_t columns = x.shape()[1];
  const std::int64_t down = -std::clamp<std::int64_t>(diagonal, -rows, 0);
  const std::int64_t right = std::clamp<std::int64_t>(diagonal, 0, columns);
  const std::int64_t count = std::min(rows - down, columns - right);
  const Tensor flat = x.reshape({rows * columns});
  if (count <= 0) return flat.narrow(0, 0, 0).clone();
  return each_nth(flat, down * columns + right, count, columns + 1).clone();
}

// n zeros after each element make rows that are one too long: cut again at n, they are the diagonal.
Tensor matrix_with(const Tensor& x, std::int64_t diagonal) {
  const std::int64_t n = x.shape()[0];
  Tensor square = pad(x.reshape({n, 1}), {0, n}).reshape({n * (n + 1)}).narrow(0, 0, n * n).reshape({n, n});
  const std::int64_t down = -std::clamp<std::int64_t>(diagonal, -INT64_MAX, 0);
  const std::int64_t right = std::max<std::int64_t>(diagonal, 0);
  return down + right == 0 ? square.clone() : pad(square, {right, down, down, right});
}

Tensor nonzero_cpu(const Operation& op, const Tensor& x) {
  if (x.dtype() != DType::boolean) fail(Errc::bad_dtype, op.name, "{}, must be BOOL", ops::form(x));
  const Tensor found = x.contiguous();
  const auto* is = reinterpret_cast<const std::uint8_t*>(found.data());
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < found.numel(); ++i)
    if (is[i] != 0) places.push_back(i);
  const auto count = static_cast<std::int64_t>(places.size());
  const auto rank = static_cast<std::int64_t>(x.rank());
  Tensor out = Tensor::empty(DType::i64, {count, rank});
  if (out.numel() == 0) return out;
  auto to = out.mutable_span<std::int64_t>();
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::int64_t rest = places[i];
    for (std::size_t d = x.rank(); d-- > 0; rest /= x.shape()[d]) to[i * x.rank() + d] = rest % x.shape()[d];
  }
  return out;
}

// All of them, at most.
std::optional<ops::Forms> nonzero_form(const OperationCall& call) {
  if (call.dtype(0) != DType::boolean) return std::nullopt;
  return ops::Forms{{DType::i64, {call.inputs[0].numel(), static_cast<std::int64_t>(call.shape(0).size())}}};
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&)> nonzero = {about("nonzero", {"x"}, {}, nonzero_form),
                                                              {nonzero_cpu}};

}  // namespace operations

Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source) {
  const std::size_t axis = ops::axis_of("index_add", dim, x);
  if (index.rank() != 1 || source.rank() != x.rank() || x.rank() == 0 ||
      source.shape()[axis] != index.shape()[0])
    fail(Errc::shape_mismatch, "index_add", "{} into {} by {}", ops::form(source), ops::form(x),
         ops::form(index));
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (i != axis && source.shape()[i] != x.shape()[i])
      fail(Errc::shape_mismatch, "index_add", "{} into {}", ops::form(source), ops::form(x));
  Shape alone = Dims::filled(x.rank(), 1);
  alone[axis] = index.shape()[0];
  return scatter_add(x, dim, index.reshape(alone).expand(source.shape()), source);
}

Tensor nonzero(const Tensor& x) {
  return run(operations::nonzero, x.defined() && x.dtype() == DType::boolean ? x : ne(x, 0));
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  ops::require_defined("masked_select", x);
  if (mask.dtype() != DType::boolean)
    fail(Errc::bad_dtype, "masked_select", "the mask is {}, must be BOOL", ops::form(mask));
  const Shape shape = ops::broadcast("masked_select", x.shape(), mask.shape());
  const Tensor places = nonzero(mask.expand(shape).reshape({-1}));
  return index_select(x.expand(shape).reshape({-1}), 0, places.reshape({-1}));
}

std::vector<Tensor> unbind(const Tensor& x, std::int64_t dim) {
  const std::size_t axis = ops::axis_of("unbind", dim, x);
  if (x.rank() == 0) fail(Errc::shape_mismatch, "unbind", "{} has no dimension", ops::form(x));
  std::vector<Tensor> views;
  std::vector<Index> at(axis, Slice{});
  for (std::int64_t i = 0; i < x.shape()[axis]; ++i) {
    at.resize(axis, Slice{});
    at.emplace_back(i);
    views.push_back(x.index(at));
    at.pop_back();
  }
  return views;
}

std::vector<Tensor> meshgrid(std::span<const Tensor> lists, bool xy) {
  Shape shape;
  for (const Tensor& list : lists) {
    if (list.rank() > 1) fail(Errc::shape_mismatch, "meshgrid", "{} is no list", ops::form(list));
    shape.push_back(list.numel());
  }
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    Shape alone = Dims::filled(lists.size(), 1);
    alone[i] = shape[i];
    Tensor grid = lists[i].reshape(alone).expand(shape);
    grids.push_back(xy && lists.size() > 1 ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

Tensor diag(const Tensor& x, std::int64_t diagonal) {
  if (x.rank() != 1 && x.rank() != 2)
    fail(Errc::shape_mismatch, "diag", "{} is no list and no matrix", ops::form(x));
  return x.rank() == 2 ? diagonal_of(x, diagonal) : matrix_with(x, diagonal);
}

}  // namespace ballast
