// SPDX-License-Identifier: Apache-2.0
// Tensors made from tensors without touching a byte: other shape, other strides, other start.
#include <algorithm>
#include <utility>
#include <vector>

#include "ballast/tensor.h"
#include "base/checked.h"
#include "tensor/describe.h"
#include "tensor/trace.h"
#include "tensor/view_operations.h"

namespace ballast {
namespace {

// What start:stop:step means in a dimension of `size`, by Python's rules: everything clamped, negative
// numbers from the end.
struct Range {
  std::int64_t start;
  std::int64_t step;
  std::int64_t length;
};

Range resolve(const Slice& slice, std::int64_t size) {
  // One more than the smallest, so that it can be negated; no dimension is long enough to tell.
  const std::int64_t step = std::max(slice.step.value_or(1), -INT64_MAX);
  const std::int64_t lowest = step < 0 ? -1 : 0;
  const std::int64_t highest = step < 0 ? size - 1 : size;
  const auto clamp = [&](std::int64_t position) {
    return std::clamp(position < 0 ? position + size : position, lowest, highest);
  };
  const std::int64_t start = slice.start ? clamp(*slice.start) : (step < 0 ? highest : lowest);
  const std::int64_t stop = slice.stop ? clamp(*slice.stop) : (step < 0 ? lowest : highest);
  const std::int64_t distance = step < 0 ? start - stop : stop - start;
  return {start, step, distance > 0 ? (distance - 1) / (step < 0 ? -step : step) + 1 : 0};
}

// The strides with which `shape` shows the same elements in the same order, if there are any. Both have the
// same, nonzero number of elements. Dimensions of the two are matched in groups of equal product; inside a
// group the old ones must be walkable by one stride.
std::optional<Strides> strides_for(ShapeView old_shape, ShapeView old_strides, ShapeView shape) {
  Strides strides = Dims::filled(shape.size(), 1);
  std::size_t next = 0;  // of `shape`
  std::size_t i = 0;
  while (i < old_shape.size()) {
    std::int64_t run = old_shape[i];
    std::int64_t stride = old_strides[i];
    for (++i; i < old_shape.size(); ++i) {
      if (old_shape[i] == 1) continue;
      if (run != 1 && stride != old_shape[i] * old_strides[i]) break;
      run *= old_shape[i];
      stride = old_strides[i];
    }
    std::int64_t left = run;
    for (; next < shape.size() && (left > 1 || shape[next] == 1); ++next) {
      if (left % shape[next] != 0) return std::nullopt;
      left /= shape[next];
      strides[next] = left * stride;
    }
    if (left != 1) return std::nullopt;
  }
  return strides;
}

struct IndexCounts {
  std::size_t dimensions = 0;  // taken by numbers and slices
  std::size_t ellipses = 0;
};

IndexCounts count_indices(std::span<const Index> indices) {
  IndexCounts counts;
  for (const Index& index : indices) {
    if (index.kind == Index::Kind::dots)
      ++counts.ellipses;
    else if (index.kind != Index::Kind::axis)
      ++counts.dimensions;
  }
  return counts;
}

}  // namespace

std::size_t Tensor::axis(std::int64_t dim, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (dim < -count || dim >= count)
    fail(Errc::shape_mismatch, describe(dtype_, shape_), "has no dimension {}", dim);
  return static_cast<std::size_t>(dim < 0 ? dim + count : dim);
}

void Tensor::advance(std::int64_t elements) noexcept {
  // Modulo 2^64: the sum is a place inside the storage, whatever its parts.
  bit_offset_ += static_cast<std::uint64_t>(elements) * info(dtype_).bits;
}

Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const {
  const std::size_t i = axis(a, rank());
  const std::size_t j = axis(b, rank());
  if (tracing::on()) {
    Dims order;
    for (std::size_t k = 0; k < rank(); ++k)
      order.push_back(static_cast<std::int64_t>(k == i ? j : (k == j ? i : k)));
    return permute(order);
  }
  Tensor view = *this;
  std::swap(view.shape_[i], view.shape_[j]);
  std::swap(view.strides_[i], view.strides_[j]);
  return view;
}

Tensor Tensor::permute(std::span<const std::int64_t> order) const {
  if (tracing::on())
    return tracing::record(operations::permute, {*this}, {{"order", Dims(ShapeView(order))}},
                           [&] { return permute(order); });
  if (order.size() != rank()) {
    fail(Errc::shape_mismatch, describe(dtype_, shape_), "cannot be permuted by {} numbers", order.size());
  }
  Tensor view = *this;
  std::vector<bool> seen(rank(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t from = axis(order[i], rank());
    if (seen[from]) {
      fail(Errc::shape_mismatch, describe(dtype_, shape_), "dimension {} appears twice in the permutation",
           order[i]);
    }
    seen[from] = true;
    view.shape_[i] = shape_[from];
    view.strides_[i] = strides_[from];
  }
  return view;
}

Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  if (tracing::on())
    return tracing::record(operations::narrow, {*this}, {{"dim", dim}, {"start", start}, {"length", length}},
                           [&] { return narrow(dim, start, length); });
  const std::size_t i = axis(dim, rank());
  if (start < 0 || length < 0 || start > shape_[i] - length) {
    fail(Errc::shape_mismatch, describe(dtype_, shape_), "has no {} elements from {} in dimension {}", length,
         start, i);
  }
  Tensor view = *this;
  view.shape_[i] = length;
  view.numel_ = checked_numel(dtype_, view.shape_);
  if (view.numel_ > 0) view.advance(start * strides_[i]);
  return view;
}

Tensor Tensor::unsqueeze(std::int64_t dim) const {
  const std::size_t i = axis(dim, rank() + 1);
  if (tracing::on())
    return tracing::record(operations::unsqueeze, {*this}, {{"dim", static_cast<std::int64_t>(i)}},
                           [&] { return unsqueeze(dim); });
  Tensor view = *this;
  view.shape_.insert(i, 1);
  view.strides_.insert(i, i < rank() ? try_mul(strides_[i], shape_[i]).value_or(1) : 1);
  return view;
}

Tensor Tensor::squeeze(std::int64_t dim) const {
  const std::size_t i = axis(dim, rank());
  if (shape_[i] != 1) return *this;
  if (tracing::on())
    return tracing::record(operations::squeeze, {*this}, {{"dim", static_cast<std::int64_t>(i)}},
                           [&] { return squeeze(dim); });
  Tensor view = *this;
  view.shape_.erase(i);
  view.strides_.erase(i);
  return view;
}

Tensor Tensor::expand(Shape shape) const {
  if (tracing::on())
    return tracing::record(operations::expand, {*this}, {{"shape", shape}}, [&] { return expand(shape); });
  const auto refuse = [&] {
    fail(Errc::shape_mismatch, describe(dtype_, shape_), "cannot be expanded to {}", to_string(shape));
  };
  if (shape.size() < rank()) refuse();
  const std::size_t extra = shape.size() - rank();
  Tensor view = *this;
  view.strides_ = Dims::filled(shape.size(), 0);
  for (std::size_t i = 0; i < rank(); ++i) {
    std::int64_t& wanted = shape[extra + i];
    if (wanted == -1) wanted = shape_[i];
    if (shape_[i] != wanted && shape_[i] != 1) refuse();
    view.strides_[extra + i] = shape_[i] == wanted ? strides_[i] : 0;
  }
  view.numel_ = checked_numel(dtype_, shape);
  view.shape_ = std::move(shape);
  return view;
}

Tensor Tensor::reshape(Shape shape) const {
  if (!defined()) fail(Errc::invalid_argument, "reshape", "the tensor is undefined");
  if (tracing::on())
    return tracing::record(operations::reshape, {*this}, {{"shape", shape}}, [&] { return reshape(shape); });
  const auto refuse = [&](const char* why) {
    fail(Errc::shape_mismatch, describe(dtype_, shape_), "cannot be reshaped to {}: {}", to_string(shape),
         why);
  };
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    const auto others = try_numel(shape);
    if (!others || *others == 0 || numel_ % *others != 0) {
      *open = -1;
      refuse("nothing fits in the place of -1");
    }
    *open = numel_ / *others;
  }
  if (try_numel(shape) != numel_) refuse("the number of elements differs");
  if (!storage_) return {dtype_, std::move(shape)};
  Strides strides = contiguous_strides(shape);
  if (numel_ > 0) {
    const auto found = strides_for(shape_, strides_, shape);
    if (!found) return clone().reshape(std::move(shape));
    strides = *found;
  }
  Tensor view = *this;
  view.shape_ = std::move(shape);
  view.strides_ = std::move(strides);
  return view;
}

// As a trace wants it: one recorded step for each dimension that changes.
Tensor Tensor::index_step_by_step(std::span<const Index> indices) const {
  const std::size_t whole = rank() - count_indices(indices).dimensions;
  Tensor view = *this;
  std::int64_t dim = 0;  // of `view`
  for (const Index& index : indices) {
    if (index.kind == Index::Kind::axis) {
      view = view.unsqueeze(dim++);
    } else if (index.kind == Index::Kind::dots) {
      dim += static_cast<std::int64_t>(whole);
    } else if (index.kind == Index::Kind::slice) {
      const Slice& slice = index.slice;
      if (slice.start || slice.stop || slice.step) view = view.slice_along(dim, slice);
      ++dim;
    } else {
      view = view.select(dim, index.number);
    }
  }
  return view;
}

Tensor Tensor::slice_along(std::int64_t dim, const Slice& slice) const {
  std::vector<Index> indices(static_cast<std::size_t>(dim), Slice{});
  indices.emplace_back(slice);
  // What is absent, and numbers counted from the end, mean the same for every size.
  constexpr std::int64_t kEnd = INT64_MAX;
  const std::int64_t step = slice.step.value_or(1);
  return tracing::record(operations::slice, {*this},
                         {{"dim", dim},
                          {"start", slice.start.value_or(step < 0 ? kEnd : 0)},
                          {"stop", slice.stop.value_or(step < 0 ? -kEnd : kEnd)},
                          {"step", step}},
                         [&] { return index(indices); });
}

Tensor Tensor::select(std::int64_t dim, std::int64_t position) const {
  std::vector<Index> indices(static_cast<std::size_t>(dim), Slice{});
  indices.emplace_back(position);
  return tracing::record(operations::select, {*this}, {{"dim", dim}, {"index", position}},
                         [&] { return index(indices); });
}

Tensor Tensor::index(std::span<const Index> indices) const {
  const IndexCounts counts = count_indices(indices);
  if (counts.dimensions > rank()) {
    fail(Errc::shape_mismatch, describe(dtype_, shape_), "has {} dimensions, {} were indexed", rank(),
         counts.dimensions);
  }
  if (counts.ellipses > 1)
    fail(Errc::invalid_argument, describe(dtype_, shape_), "an index can have one ellipsis, not {}",
         counts.ellipses);
  if (tracing::on()) return index_step_by_step(indices);
  Tensor view = *this;
  view.shape_ = {};
  view.strides_ = {};
  std::int64_t start = 0;  // of the view, in elements from this one's
  std::size_t dim = 0;
  const auto keep = [&](std::int64_t size, std::int64_t stride) {
    view.shape_.push_back(size);
    view.strides_.push_back(stride);
  };
  const auto keep_whole = [&](std::size_t count) {
    for (; count > 0; --count, ++dim) keep(shape_[dim], strides_[dim]);
  };
  // Of an empty tensor no element is ever reached, and its strides may be anything.
  const auto move = [&](std::int64_t position) {
    if (numel_ > 0) start += position * strides_[dim];
  };
  for (const Index& index : indices) {
    if (index.kind == Index::Kind::axis) {
      keep(1, 0);
    } else if (index.kind == Index::Kind::dots) {
      keep_whole(rank() - counts.dimensions);
    } else if (index.kind == Index::Kind::slice) {
      if (index.slice.step == 0)
        fail(Errc::invalid_argument, describe(dtype_, shape_), "a slice cannot have step 0");
      const Range range = resolve(index.slice, shape_[dim]);
      if (range.length > 0) move(range.start);
      // A single element's stride is never used, and a step may be too large to multiply.
      keep(range.length, range.length > 1 && numel_ > 0 ? strides_[dim] * range.step : strides_[dim]);
      ++dim;
    } else {
      const std::int64_t position = index.number;
      if (position < -shape_[dim] || position >= shape_[dim]) {
        fail(Errc::offset_out_of_range, describe(dtype_, shape_),
             "index {} is outside dimension {} of size {}", position, dim, shape_[dim]);
      }
      move(position < 0 ? position + shape_[dim] : position);
      ++dim;
    }
  }
  keep_whole(rank() - dim);
  view.numel_ = checked_numel(dtype_, view.shape_);
  if (view.numel_ > 0) view.advance(start);
  return view;
}

}  // namespace ballast
