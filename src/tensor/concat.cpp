// SPDX-License-Identifier: Apache-2.0
#include "tensor/concat.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"

namespace ballast {
namespace {

// Reads piece by piece from the parts; data() makes the whole and keeps it.
class ConcatStorage final : public Storage {
 public:
  ConcatStorage(std::vector<Tensor> parts, std::vector<std::uint64_t> blocks, std::uint64_t rows,
                std::uint64_t size)
      : Storage(size),
        parts_(std::move(parts)),
        blocks_(std::move(blocks)),
        row_(size / std::max<std::uint64_t>(rows, 1)),
        whole_(Storage::deferred(size, [this](std::span<std::byte> out) { copy(0, out); })) {}

  [[nodiscard]] const std::byte* data() const override { return whole_->data(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    copy(offset, out);
  }

 private:
  // A row is one block of every part, in order.
  void copy(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const std::uint64_t row = offset / row_;
      std::uint64_t inside = offset % row_;
      std::size_t part = 0;
      while (inside >= blocks_[part]) inside -= blocks_[part++];
      const auto length =
          static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), blocks_[part] - inside));
      parts_[part].read(row * blocks_[part] + inside, out.first(length));
      out = out.subspan(length);
      offset += length;
    }
  }

  std::vector<Tensor> parts_;
  std::vector<std::uint64_t> blocks_;  // bytes of one row in each part
  std::uint64_t row_;
  std::shared_ptr<const Storage> whole_;
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
  const Tensor result(first.dtype(), shape);
  if (std::any_of(parts.begin(), parts.end(), [](const Tensor& part) { return !part.has_data(); }))
    return result;
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i < axis; ++i) rows *= static_cast<std::uint64_t>(shape[i]);
  std::vector<std::uint64_t> blocks;
  for (const Tensor& part : parts) {
    const std::uint64_t bits =
        static_cast<std::uint64_t>(part.numel()) / std::max<std::uint64_t>(rows, 1) * info(part.dtype()).bits;
    if (bits % 8 != 0)
      fail(Errc::misaligned, "concat", "{} elements of {} do not end on a byte", part.numel(),
           info(part.dtype()).code);
    blocks.push_back(bits / 8);
  }
  return Tensor::contiguous_view(
      first.dtype(), shape,
      std::make_shared<ConcatStorage>(std::vector<Tensor>(parts.begin(), parts.end()), std::move(blocks),
                                      rows, result.size_bytes()));
}

}  // namespace ballast
