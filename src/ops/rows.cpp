// SPDX-License-Identifier: Apache-2.0
#include "ops/rows.h"

#include "ops/args.h"

namespace ballast::ops {

std::vector<bool> reduced_axes(const char* op, const Tensor& x, const Dims& dims) {
  require_computable(op, x);
  std::vector<bool> reduced(x.rank(), dims.empty());
  for (const std::int64_t dim : dims) {
    const std::size_t axis = axis_of(op, dim, x);
    if (x.rank() == 0) continue;
    if (reduced[axis])
      fail(Errc::invalid_argument, op, "dimension {} appears twice in {}", axis, to_string(dims));
    reduced[axis] = true;
  }
  return reduced;
}

Rows rows_along(const char* op, const Tensor& x, const Dims& dims, DType compute) {
  const std::vector<bool> reduced = reduced_axes(op, x, dims);
  Rows rows{{}, 1, 1, {}, {}};
  Dims order;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    rows.keepdim.push_back(reduced[i] ? 1 : x.shape()[i]);
    if (reduced[i]) continue;
    order.push_back(static_cast<std::int64_t>(i));
    rows.kept.push_back(x.shape()[i]);
    rows.count *= x.shape()[i];
  }
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) continue;
    order.push_back(static_cast<std::int64_t>(i));
    rows.length *= x.shape()[i];
  }
  rows.values = dense(x.to(compute).permute(order));
  return rows;
}

Tensor back_in_place(const Tensor& rows, const Tensor& like, std::size_t axis) {
  Shape shape;
  for (std::size_t i = 0; i < like.rank(); ++i) {
    if (i != axis) shape.push_back(like.shape()[i]);
  }
  if (like.rank() > 0) shape.push_back(rows.shape()[1]);
  Dims order;
  for (std::size_t i = 0; i < like.rank(); ++i) {
    const std::size_t from = i == axis ? like.rank() - 1 : (i < axis ? i : i - 1);
    order.push_back(static_cast<std::int64_t>(from));
  }
  return rows.reshape(shape).permute(order).contiguous();
}

}  // namespace ballast::ops
