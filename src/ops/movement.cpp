// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/movement.h"

#include <algorithm>
#include <utility>

#include "ops/args.h"
#include "ops/copy_into.h"
#include "ops/native.h"
#include "ops/operations.h"

namespace ballast {

using ops::axis_of;
using ops::copy_into;
using ops::form;

namespace {

// The shape all have but for `axis`, whose sizes add up.
Shape joined_shape(const char* op, std::span<const Tensor> tensors, std::size_t axis) {
  Shape shape = tensors[0].shape();
  shape[axis] = 0;
  for (const Tensor& tensor : tensors) {
    Shape rest = tensor.shape();
    if (tensor.dtype() != tensors[0].dtype()) {
      fail(Errc::bad_dtype, op, "{} and {} do not have one dtype", form(tensors[0]), form(tensor));
    }
    if (rest.size() != shape.size())
      fail(Errc::shape_mismatch, op, "{} and {} do not have one rank", form(tensors[0]), form(tensor));
    const std::int64_t size = std::exchange(rest[axis], shape[axis]);
    if (!(rest == shape))
      fail(Errc::shape_mismatch, op, "{} and {} differ outside dimension {}", form(tensors[0]), form(tensor),
           axis);
    shape[axis] += size;
  }
  return shape;
}

template <bool lower>
Tensor triangle_cpu(const Operation& op, const Tensor& x, std::int64_t diagonal) {
  ops::require_movable(op.name, x);
  if (x.rank() < 2) fail(Errc::shape_mismatch, op.name, "{} has no two last dimensions", form(x));
  Tensor out = x.clone();
  const std::int64_t rows = x.shape()[x.rank() - 2];
  const std::int64_t columns = x.shape()[x.rank() - 1];
  if (out.numel() == 0) return out;
  const std::int64_t first = std::clamp(diagonal, -rows, columns) + (lower ? 1 : 0);
  ops::with_element_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    T* to = reinterpret_cast<T*>(out.mutable_data());
    for (std::int64_t row = 0; row < out.numel() / columns; ++row) {
      const std::int64_t edge = std::clamp<std::int64_t>(row % rows + first, 0, columns);
      std::fill(to + row * columns + (lower ? edge : 0), to + row * columns + (lower ? columns : edge), T{});
    }
  });
  return out;
}

double largest_bound(std::span<const Tensor> tensors) {
  double largest = 0;
  for (const Tensor& tensor : tensors) largest = std::max(largest, ops::bound_of(tensor));
  return largest;
}

// Channels of images that lie in blocks of them.
Tensor joined_blocks(std::span<const Tensor> tensors, const Shape& shape) {
  const std::int64_t block = shape[2] * shape[3] * ops::kBlock;
  const Tensor out = ops::new_blocks(shape);
  const auto flat = [&](const Tensor& blocks, std::int64_t channels) {
    return Tensor::contiguous_view(DType::f32, {shape[0], channels / ops::kBlock * block}, blocks.storage());
  };
  std::int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    const Tensor from = flat(ops::blocks_of(tensor), tensor.shape()[1]);
    copy_into(from, flat(out, shape[1]).narrow(1, begin, from.shape()[1]));
    begin += from.shape()[1];
  }
  return ops::from_blocks(out, shape, largest_bound(tensors));
}

Tensor concat_cpu(const Operation& op, std::span<const Tensor> tensors, std::int64_t dim) {
  for (const Tensor& tensor : tensors) ops::require_movable(op.name, tensor);
  if (tensors[0].rank() == 0)
    fail(Errc::shape_mismatch, op.name, "{} has no dimension to be joined along", form(tensors[0]));
  const std::size_t axis = axis_of(op.name, dim, tensors[0]);
  const Shape shape = joined_shape(op.name, tensors, axis);
  if (axis == 1 && std::all_of(tensors.begin(), tensors.end(),
                               [](const Tensor& t) { return ops::blocks_of(t).defined(); }))
    return joined_blocks(tensors, shape);
  const bool images = std::all_of(tensors.begin(), tensors.end(),
                                  [](const Tensor& t) { return ops::is_channels_last(ops::native_view(t)); });
  const Tensor out =
      images ? ops::new_channels_last(tensors[0].dtype(), shape) : ops::new_tensor(tensors[0].dtype(), shape);
  std::int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t size = tensor.shape()[axis];
    copy_into(ops::native_view(tensor), out.narrow(static_cast<std::int64_t>(axis), begin, size));
    begin += size;
  }
  return ops::row_major(out, largest_bound(tensors));
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(std::span<const Tensor>, std::int64_t)> concat = {
    about("concat", {"tensors"}, {"dim"}, forms::concat), {concat_cpu}};
constinit const Along tril = {about("tril", {"x"}, {"diagonal"}, forms::triangle), {triangle_cpu<true>}};
constinit const Along triu = {about("triu", {"x"}, {"diagonal"}, forms::triangle), {triangle_cpu<false>}};

}  // namespace operations

Tensor concat(std::span<const Tensor> tensors, std::int64_t dim) {
  if (tensors.empty()) fail(Errc::invalid_argument, "concat", "nothing to concatenate");
  return run(operations::concat, tensors, dim);
}

Tensor stack(std::span<const Tensor> tensors, std::int64_t dim) {
  std::vector<Tensor> raised;
  for (const Tensor& tensor : tensors) {
    if (!(tensor.shape() == tensors[0].shape()))
      fail(Errc::shape_mismatch, "stack", "{} and {} differ", form(tensors[0]), form(tensor));
    raised.push_back(tensor.unsqueeze(dim));
  }
  if (raised.empty()) fail(Errc::invalid_argument, "stack", "nothing to stack");
  return concat(raised, dim);
}

std::vector<Tensor> split(const Tensor& x, const Dims& sizes, std::int64_t dim) {
  const std::size_t axis = axis_of("split", dim, x);
  if (x.rank() == 0) fail(Errc::shape_mismatch, "split", "{} has no dimension to be split", form(x));
  std::int64_t left = x.shape()[axis];
  const bool fits = std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t size) {
    return size >= 0 && size <= left && (left -= size, true);
  });
  if (!fits || left != 0) {
    fail(Errc::shape_mismatch, "split", "sizes {} do not make up dimension {} of {}", to_string(sizes), axis,
         form(x));
  }
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(x.narrow(static_cast<std::int64_t>(axis), begin, size));
    begin += size;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim) {
  const std::size_t axis = axis_of("split", dim, x);
  if (x.rank() == 0 || size < 1) fail(Errc::invalid_argument, "split", "{} into pieces of {}", form(x), size);
  Dims sizes;
  const std::int64_t whole = x.shape()[axis];
  for (std::int64_t begin = 0; begin < whole || begin == 0; begin += size)
    sizes.push_back(std::min(size, whole - begin));
  return split(x, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, std::int64_t dim) {
  const std::size_t axis = axis_of("chunk", dim, x);
  if (x.rank() == 0 || count < 1 || count > ops::kMostSpatial)
    fail(Errc::invalid_argument, "chunk", "{} into {} pieces", form(x), count);
  const std::int64_t whole = x.shape()[axis];
  if (whole == 0) return split(x, Dims::filled(static_cast<std::size_t>(count), 0), dim);
  return split(x, (whole - 1) / count + 1, dim);
}

Tensor flatten(const Tensor& x, std::int64_t start, std::int64_t end) {
  const std::size_t first = axis_of("flatten", x.rank() == 0 ? 0 : start, x);
  const std::size_t last = axis_of("flatten", end, x);
  if (first > last)
    fail(Errc::shape_mismatch, "flatten", "dimensions {} to {} of {} are none", start, end, form(x));
  if (x.rank() == 0) return x.reshape({1});
  Shape shape;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (i <= first || i > last)
      shape.push_back(x.shape()[i]);
    else
      shape[first] = ops::checked_size("flatten", shape[first], x.shape()[i]);
  }
  return x.reshape(shape);
}

Tensor flip(const Tensor& x, const Dims& dims) {
  ops::require_movable("flip", x);
  std::vector<Index> index(x.rank(), Slice{});
  for (const std::int64_t dim : dims) {
    const std::size_t axis = axis_of("flip", dim, x);
    if (x.rank() == 0) continue;
    if (index[axis].slice.step)
      fail(Errc::invalid_argument, "flip", "dimension {} appears twice in {}", axis, to_string(dims));
    index[axis] = Slice{{}, {}, -1};
  }
  return x.index(index).clone();
}

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  ops::require_movable("roll", x);
  if (dims.empty() && shifts.size() == 1) return roll(x.reshape({-1}), shifts, {0}).reshape(x.shape());
  if (dims.size() != shifts.size())
    fail(Errc::invalid_argument, "roll", "{} shifts for {} dimensions", shifts.size(), dims.size());
  Tensor rolled = x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t axis = axis_of("roll", dims[i], x);
    if (x.numel() == 0 || x.rank() == 0) continue;
    const auto dim = static_cast<std::int64_t>(axis);
    const std::int64_t size = x.shape()[axis];
    const std::int64_t moved = (shifts[i] % size + size) % size;
    rolled = concat({rolled.narrow(dim, size - moved, moved), rolled.narrow(dim, 0, size - moved)}, dim);
  }
  return rolled.contiguous();
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  return run(operations::tril, x, diagonal);
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
  return run(operations::triu, x, diagonal);
}

Tensor repeat(const Tensor& x, const Dims& repeats) {
  ops::require_movable("repeat", x);
  if (repeats.size() < x.rank())
    fail(Errc::shape_mismatch, "repeat", "{} numbers for {}", repeats.size(), form(x));
  Shape shape = x.shape();
  while (shape.size() < repeats.size()) shape.insert(0, 1);
  Shape apart;   // [1, size] for every dimension
  Shape spread;  // [times, size]
  Shape joined;  // [times * size]
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (repeats[i] < 0) fail(Errc::invalid_argument, "repeat", "{} times", repeats[i]);
    for (const std::int64_t dim : {std::int64_t{1}, shape[i]}) apart.push_back(dim);
    for (const std::int64_t dim : {repeats[i], shape[i]}) spread.push_back(dim);
    joined.push_back(ops::checked_size("repeat", repeats[i], shape[i]));
  }
  return x.reshape(apart).expand(spread).clone().reshape(joined);
}

Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::int64_t dim) {
  ops::require_movable("repeat_interleave", x);
  const std::size_t axis = axis_of("repeat_interleave", dim, x);
  if (repeats < 0 || x.rank() == 0)
    fail(Errc::invalid_argument, "repeat_interleave", "{} repeated {} times", form(x), repeats);
  Shape spread = x.shape();
  spread.insert(axis + 1, repeats);
  Shape joined = x.shape();
  joined[axis] = ops::checked_size("repeat_interleave", joined[axis], repeats);
  return x.unsqueeze(static_cast<std::int64_t>(axis) + 1).expand(spread).clone().reshape(joined);
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  ops::require_movable("pixel_shuffle", x);
  const std::size_t rank = x.rank();
  if (rank < 3 || factor < 1 || factor > ops::kMostSpatial || x.shape()[rank - 3] % (factor * factor) != 0) {
    fail(Errc::shape_mismatch, "pixel_shuffle", "{} has no channels that {} * {} divides", form(x), factor,
         factor);
  }
  const std::int64_t channels = x.shape()[rank - 3] / (factor * factor);
  const std::int64_t height = x.shape()[rank - 2];
  const std::int64_t width = x.shape()[rank - 1];
  const std::int64_t batch = ops::product(x.shape(), 0, rank - 3);
  Shape shape = x.shape();
  shape[rank - 3] = channels;
  shape[rank - 2] = ops::checked_size("pixel_shuffle", height, factor);
  shape[rank - 1] = ops::checked_size("pixel_shuffle", width, factor);
  return x.reshape({batch, channels, factor, factor, height, width})
      .permute({0, 1, 4, 2, 5, 3})
      .clone()
      .reshape(shape);
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  ops::require_movable("pixel_unshuffle", x);
  const std::size_t rank = x.rank();
  if (rank < 3 || factor < 1 || factor > ops::kMostSpatial || x.shape()[rank - 2] % factor != 0 ||
      x.shape()[rank - 1] % factor != 0) {
    fail(Errc::shape_mismatch, "pixel_unshuffle", "{} has no height and width that {} divides", form(x),
         factor);
  }
  const std::int64_t batch = ops::product(x.shape(), 0, rank - 2);
  const std::int64_t height = x.shape()[rank - 2] / factor;
  const std::int64_t width = x.shape()[rank - 1] / factor;
  Shape shape = x.shape();
  shape[rank - 3] = ops::checked_size("pixel_unshuffle", shape[rank - 3], factor * factor);
  shape[rank - 2] = height;
  shape[rank - 1] = width;
  return x.reshape({batch, height, factor, width, factor}).permute({0, 2, 4, 1, 3}).clone().reshape(shape);
}

}  // namespace ballast
