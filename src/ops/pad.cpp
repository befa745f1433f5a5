// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/movement.h"
#include "ops/args.h"
#include "ops/copy_into.h"
#include "ops/operations.h"
#include "ops/walk.h"

namespace ballast {

using ops::form;

namespace {

// `count` positions of a dimension from `first` on; backwards with a `step` of -1.
Tensor positions(const Tensor& x, std::size_t axis, std::int64_t first, std::int64_t count,
                 std::int64_t step) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape[axis] = count;
  const std::int64_t bits = info(x.dtype()).bits;
  const auto start = static_cast<std::int64_t>(x.bit_offset()) + first * strides[axis] * bits;
  strides[axis] *= step;
  return {x.dtype(), shape, strides, x.storage(), static_cast<std::uint64_t>(start)};
}

void check_room(const Tensor& x, std::size_t axis, std::int64_t before, std::int64_t after, PadMode mode) {
  const std::int64_t size = x.shape()[axis];
  const std::int64_t most = mode == PadMode::reflect ? size - 1 : size;
  if (before < 0 || after < 0 || size == 0 ||
      (mode != PadMode::replicate && std::max(before, after) > most)) {
    fail(Errc::shape_mismatch, "pad", "dimension {} of {} cannot be padded by {} and {} in this mode", axis,
         form(x), before, after);
  }
}

// Both ends of a dimension of `to`, whose middle, `size` positions from `before` on, is there.
void fill_ends(const Tensor& to, std::size_t axis, std::int64_t before, std::int64_t size, PadMode mode) {
  const std::int64_t end = before + size;
  const std::int64_t after = to.shape()[axis] - end;
  const auto copy = [&](std::int64_t target, std::int64_t count, std::int64_t first, std::int64_t step) {
    if (count > 0)
      ops::copy_into(positions(to, axis, first, count, step), positions(to, axis, target, count, 1));
  };
  switch (mode) {
    case PadMode::reflect:
      copy(0, before, 2 * before, -1);
      copy(end, after, end - 2, -1);
      return;
    case PadMode::replicate:
      copy(0, before, before, 0);
      copy(end, after, end - 1, 0);
      return;
    case PadMode::circular:
      copy(0, before, size, 1);
      copy(end, after, before, 1);
      return;
    case PadMode::constant:
      return;
  }
}

// The middle first; then the ends of dimension after dimension, the last first, each from what is there.
Tensor pad_from_within(const Tensor& x, const Dims& amounts, PadMode mode) {
  Shape shape = x.shape();
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    const std::size_t axis = x.rank() - 1 - i;
    if (amounts[2 * i] == 0 && amounts[2 * i + 1] == 0) continue;
    check_room(x, axis, amounts[2 * i], amounts[2 * i + 1], mode);
    shape[axis] += amounts[2 * i] + amounts[2 * i + 1];
  }
  Tensor out = ops::new_tensor(x.dtype(), shape);
  if (out.numel() == 0) return out;
  // Of dimension after dimension only the middle, the first one first.
  std::vector<Tensor> inside = {out};
  for (std::size_t i = amounts.size() / 2; i-- > 0;) {
    const std::size_t axis = x.rank() - 1 - i;
    inside.push_back(positions(inside.back(), axis, amounts[2 * i], x.shape()[axis], 1));
  }
  ops::copy_into(x, inside.back());
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    inside.pop_back();
    const std::size_t axis = x.rank() - 1 - i;
    fill_ends(inside.back(), axis, amounts[2 * i], x.shape()[axis], mode);
  }
  return out;
}

// Rows of `given` into the longer ones of `to`, `start` elements on; `filling` before and after them.
void pad_rows(const Tensor& given, const Tensor& filling, std::int64_t start, Tensor to) {
  const auto last = static_cast<std::int64_t>(to.rank()) - 1;
  const std::int64_t length = given.shape()[given.rank() - 1];
  const std::int64_t after = to.shape()[to.rank() - 1] - length - start;
  if (to.numel() == 0) return;
  if (length == 0) return ops::copy_into(filling.expand(to.shape()), to);
  const Tensor from = ops::aligned(given);
  const std::int64_t apart = from.strides()[from.rank() - 1];
  const Tensor heads = to.narrow(last, 0, 1);  // the first of each row
  const Tensor firsts = from.narrow(last, 0, 1);
  const ops::Walk walk{&heads, &firsts};
  const ops::Offsets step = walk.row_strides();
  ops::with_element_type(to.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* in = reinterpret_cast<const T*>(from.data());
    const T* value = reinterpret_cast<const T*>(filling.data());
    T* out = reinterpret_cast<T*>(to.mutable_data());
    walk.rows([&](const ops::Offsets& at, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        const T* row = in + at[1] + i * step[1];
        T* target = std::fill_n(out + at[0] + i * step[0], start, *value);
        if (apart == 1)
          std::memcpy(target, row, static_cast<std::size_t>(length) * sizeof(T));
        else
          for (std::int64_t k = 0; k < length; ++k) target[k] = row[k * apart];
        std::fill_n(target + length, after, *value);
      }
    });
  });
}

Tensor pad_constant(const Tensor& x, const Dims& amounts, double value) {
  Tensor inside = x;
  Shape shape = x.shape();
  Dims start = Dims::filled(x.rank(), 0);
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    const std::size_t axis = x.rank() - 1 - i;
    const auto dim = static_cast<std::int64_t>(axis);
    const std::int64_t before = amounts[2 * i];
    const std::int64_t after = amounts[2 * i + 1];
    shape[axis] += before + after;
    const std::int64_t kept =
        x.shape()[axis] + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0);
    if (shape[axis] < 0 || kept < 0)
      fail(Errc::shape_mismatch, "pad", "{} cannot be cut by {}", form(x), to_string(amounts));
    inside = inside.narrow(dim, std::max<std::int64_t>(-before, 0), kept);
    start[axis] = std::max<std::int64_t>(before, 0);
  }
  Tensor out = ops::new_tensor(x.dtype(), shape);
  const Tensor filling = full({}, value, x.dtype());
  const auto fill = [&](const Tensor& part) { ops::copy_into(filling.expand(part.shape()), part); };
  Tensor middle = out;
  for (std::size_t i = 0; i + 1 < x.rank(); ++i) {
    const auto dim = static_cast<std::int64_t>(i);
    const std::int64_t end = start[i] + inside.shape()[i];
    fill(middle.narrow(dim, 0, start[i]));
    fill(middle.narrow(dim, end, shape[i] - end));
    middle = middle.narrow(dim, start[i], inside.shape()[i]);
  }
  if (x.rank() > 0)
    pad_rows(inside, filling, start[x.rank() - 1], middle);
  else
    ops::copy_into(inside, middle);
  return out;
}

Tensor pad_cpu(const Operation& op, const Tensor& x, const Dims& amounts, PadMode mode, double value) {
  ops::require_movable(op.name, x);
  if (amounts.size() % 2 != 0 || amounts.size() / 2 > x.rank()) {
    fail(Errc::invalid_argument, op.name, "{} amounts for {}: two for each of the last dimensions are wanted",
         amounts.size(), form(x));
  }
  for (const std::int64_t amount : amounts) {
    if (amount > ops::kMostSpatial || amount < -ops::kMostSpatial)
      fail(Errc::invalid_argument, op.name, "{} is beyond all measure", to_string(amounts));
  }
  if (mode == PadMode::constant) return pad_constant(x, amounts, value);
  return pad_from_within(x, amounts, mode);
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, const Dims&, PadMode, double)> pad = {
    about("pad", {"x"}, {"amounts", "mode", "value"}, forms::pad), {pad_cpu}};

}  // namespace operations

Tensor pad(const Tensor& x, const Dims& amounts, PadMode mode, double value) {
  return run(operations::pad, x, amounts, mode, value);
}

}  // namespace ballast
