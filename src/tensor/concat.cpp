// SPDX-License-Identifier: Apache-2.0
#include "tensor/concat.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "tensor/streamed.h"

namespace ballast {
namespace {

// The bytes of parts that lie in rows side by side: a row is one block of every part, in order.
struct Rows {
  std::vector<Tensor> parts;
  std::vector<std::uint64_t> blocks;  // bytes of one row in each part
  std::uint64_t size;                 // of a row

  void copy(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const std::uint64_t row = offset / size;
      std::uint64_t inside = offset % size;
      std::size_t part = 0;
      while (inside >= blocks[part]) inside -= blocks[part++];
      const auto length =
          static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), blocks[part] - inside));
      parts[part].read(row * blocks[part] + inside, out.first(length));
      out = out.subspan(length);
      offset += length;
    }
  }
};

}  // namespace

Tensor concat_lazy(std::span<const Tensor> parts, std::int64_t dim) {
  if (parts.empty()) fail(Errc::invalid_argument, "concat", "there is nothing to join");
  const Tensor& first = parts.front();
  const auto rank = static_cast<std::int64_t>(first.rank());
  if (dim < -rank || dim >= rank)
    fail(Errc::shape_mismatch, "concat", "tensors of shape {} have no dimension {}", to_string(first.shape()),
         dim);
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
  Shape shape = first.shape();
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    Shape expected = first.shape();
    if (part.rank() == first.rank()) expected[axis] = part.shape()[axis];
    if (part.shape() != expected || part.dtype() != first.dtype()) {
      fail(Errc::shape_mismatch, "concat", "{} {} and {} {} cannot be joined along dimension {}",
           info(first.dtype()).code, to_string(first.shape()), info(part.dtype()).code,
           to_string(part.shape()), dim);
    }
    shape[axis] = checked_add(shape[axis], part.shape()[axis], "concat");
  }
  Tensor result(first.dtype(), shape);
  if (std::any_of(parts.begin(), parts.end(), [](const Tensor& part) { return !part.has_data(); }))
    return result;
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i < axis; ++i) rows *= static_cast<std::uint64_t>(shape[i]);
  Rows joined{.parts = {parts.begin(), parts.end()}, .blocks = {}, .size = 0};
  Storages sources;
  for (const Tensor& part : parts) {
    const std::uint64_t bits =
        static_cast<std::uint64_t>(part.numel()) / std::max<std::uint64_t>(rows, 1) * info(part.dtype()).bits;
    if (bits % 8 != 0)
      fail(Errc::misaligned, "concat", "{} elements of {} do not end on a byte", part.numel(),
           info(part.dtype()).code);
    joined.blocks.push_back(bits / 8);
    joined.size += bits / 8;
    sources.push_back(part.storage());
  }
  auto copy = [joined = std::move(joined)](std::uint64_t offset, std::span<std::byte> out) {
    joined.copy(offset, out);
  };
  return Tensor::contiguous_view(first.dtype(), shape,
                                 streamed_storage(result.size_bytes(), std::move(copy), std::move(sources)));
}

}  // namespace ballast
