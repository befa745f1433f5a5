// SPDX-License-Identifier: Apache-2.0
#include "ops/native.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/lazy.h"
#include "ops/args.h"
#include "ops/memory.h"
#include "ops/onednn.h"
#include "ops/parallel.h"
#include "tensor/copy.h"
#include "tensor/pool.h"

namespace ballast::ops {
namespace {

// Blocks as a view whose elements come in the order of a row-major tensor of `shape`.
Tensor in_order(const Tensor& blocks, const Shape& shape) {
  const std::int64_t plane = shape[2] * shape[3];
  return {blocks.dtype(),
          {shape[0], shape[1] / kBlock, kBlock, plane},
          {shape[1] * plane, plane * kBlock, 1, kBlock},
          blocks.storage(),
          blocks.bit_offset()};
}

Desc blocks_desc(const Shape& shape) {
  return {dims_of(shape), dnnl::memory::data_type::f32, dnnl::memory::format_tag::nChw8c};
}

class NativeStorage final : public Storage {
 public:
  NativeStorage(const Tensor& native, double bound)
      : Storage(native.size_bytes()), shape_(native.shape()), view_(native), native_(native), bound_(bound) {}

  NativeStorage(const Tensor& blocks, const Shape& shape, double bound)
      : Storage(blocks.size_bytes()),
        shape_(shape),
        view_(in_order(blocks, shape)),
        blocks_(blocks),
        bound_(bound) {}

  [[nodiscard]] const std::byte* data() const override { return bytes()->data(); }

  [[nodiscard]] bool ready() const noexcept override { return bytes_.ready(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (ready()) return Storage::read(offset, out);
    view_.read(offset, out);
  }

  /// Whether x is all of it, and the row-major bytes were not changed.
  [[nodiscard]] bool is_whole(const Tensor& x) const {
    return !written_.load(std::memory_order_acquire) && x.bit_offset() == 0 && x.dtype() == view_.dtype() &&
           x.shape() == shape_ && x.is_contiguous();
  }

  /// As a strided tensor: blocks are brought into the order of channels last, once.
  [[nodiscard]] const Tensor& native() const {
    if (native_.defined()) return native_;
    return channels_last_.get([this] {
      Tensor made = new_channels_last(DType::f32, shape_);
      reorder(blocks_desc(shape_), blocks_.data(), strided(shape_, made.strides()), made.mutable_data());
      return made;
    });
  }

  [[nodiscard]] const Tensor& blocks() const noexcept { return blocks_; }

  /// As it lies: the channels-last or the blocked one.
  [[nodiscard]] const Tensor& memory() const noexcept { return native_.defined() ? native_ : blocks_; }

  static constexpr long kViews = 2;  ///< how many tensors of its own look at that memory

  [[nodiscard]] double bound() const noexcept { return bound_; }

 private:
  [[nodiscard]] std::byte* writable_data() override {
    const auto& mine = bytes();
    written_.store(true, std::memory_order_release);
    return mine->mutable_data();
  }

  [[nodiscard]] const std::shared_ptr<Storage>& bytes() const {
    return bytes_.get([this] {
      auto made = pooled_storage(size(), Pooled::copy);
      copy_contiguous(view_, made->mutable_data());
      return made;
    });
  }

  Shape shape_;
  Tensor view_;  // its elements in row-major order are ours
  Tensor native_;
  Tensor blocks_;
  double bound_;  // of the magnitudes
  Lazy<Tensor> channels_last_;
  Lazy<std::shared_ptr<Storage>> bytes_;
  std::atomic<bool> written_{false};
};

// Null unless x is all of what lies in another order.
const NativeStorage* native_storage(const Tensor& x) {
  const auto* storage = dynamic_cast<const NativeStorage*>(x.storage().get());
  return storage != nullptr && storage->is_whole(x) ? storage : nullptr;
}

}  // namespace

Tensor native_view(const Tensor& x) {
  const NativeStorage* storage = native_storage(x);
  return storage == nullptr ? x : storage->native();
}

Tensor last_use_of(const Tensor& x) {
  if (x.storage().use_count() != 1) return {};
  const NativeStorage* storage = native_storage(x);
  if (storage == nullptr) return is_pooled_result(*x.storage()) ? x : Tensor();
  const Tensor& memory = storage->memory();
  const bool lent =
      memory.storage().use_count() == NativeStorage::kViews && is_pooled_result(*memory.storage());
  return lent ? memory : Tensor();
}

Tensor row_major(const Tensor& native, double bound) {
  if (native.is_contiguous()) {
    return {native.dtype(), native.shape(), contiguous_strides(native.shape()), native.storage(),
            native.bit_offset()};
  }
  return Tensor::contiguous_view(native.dtype(), native.shape(),
                                 std::make_shared<NativeStorage>(native, bound));
}

double bound_of(const Tensor& x) {
  const NativeStorage* storage = native_storage(x);
  return storage == nullptr ? kUnbounded : storage->bound();
}

Strides channels_last_strides(const Shape& shape) {
  Strides strides = Dims::filled(shape.size(), 1);
  std::int64_t step = shape[1];
  for (std::size_t i = shape.size(); i-- > 2;) {
    strides[i] = step;
    step *= shape[i];
  }
  strides[0] = step;
  return strides;
}

Tensor new_channels_last(DType dtype, const Shape& shape) {
  const Tensor memory = new_tensor(dtype, shape);
  return {dtype, shape, channels_last_strides(shape), memory.storage(), memory.bit_offset()};
}

// The colours of row-major images beside each other.
template <std::int64_t channels>
static void interleave(const Tensor& x, Tensor& out) {
  const std::int64_t plane = product(x.shape(), 2, x.rank());
  const float* from = data_of(x);
  float* to = data_of(out);
  parallel(x.shape()[0] * plane, 16384 / channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t image = i / plane;
      const float* pixel = from + image * plane * (channels - 1) + i;
      for (; i < std::min(end, (image + 1) * plane); ++i, ++pixel)
        for (std::int64_t c = 0; c < channels; ++c) to[i * channels + c] = pixel[c * plane];
    }
  });
}

bool is_channels_last(const Tensor& x, bool either) {
  if (x.rank() < 3 || (!either && x.is_contiguous())) return false;
  const Strides expected = channels_last_strides(x.shape());
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (x.shape()[i] != 1 && x.strides()[i] != expected[i]) return false;
  }
  return true;
}

Tensor to_channels_last(const Tensor& x) {
  if (is_channels_last(x, true))
    return {x.dtype(), x.shape(), channels_last_strides(x.shape()), x.storage(), x.bit_offset()};
  if (x.dtype() == DType::f32 && x.is_contiguous() && is_aligned(x) && x.numel() > 0 &&
      (x.shape()[1] == 3 || x.shape()[1] == 4)) {
    Tensor out = new_channels_last(x.dtype(), x.shape());
    x.shape()[1] == 3 ? interleave<3>(x, out) : interleave<4>(x, out);
    return out;
  }
  // Channels to the end, a row-major copy, and back.
  Dims order = {0};
  Dims back = {0, static_cast<std::int64_t>(x.rank()) - 1};
  for (std::size_t i = 2; i < x.rank(); ++i) {
    order.push_back(static_cast<std::int64_t>(i));
    back.push_back(static_cast<std::int64_t>(i) - 1);
  }
  order.push_back(1);
  return x.permute(order).clone().permute(back);
}

bool fits_blocks(const Shape& shape) {
  return shape.size() == 4 && shape[1] % kBlock == 0 && try_numel(shape).value_or(0) > 0;
}

Tensor blocks_of(const Tensor& x) {
  const NativeStorage* storage = native_storage(x);
  return storage == nullptr ? Tensor() : storage->blocks();
}

Tensor from_blocks(const Tensor& blocks, const Shape& shape, double bound) {
  return Tensor::contiguous_view(DType::f32, shape, std::make_shared<NativeStorage>(blocks, shape, bound));
}

Tensor new_blocks(const Shape& shape) {
  return new_channels_last(DType::f32, {shape[0] * (shape[1] / kBlock), kBlock, shape[2], shape[3]});
}

Tensor to_blocks(const Tensor& x) {
  Tensor own = blocks_of(x);
  if (own.defined()) return own;
  const Tensor native = native_view(x);
  const Tensor from = is_channels_last(native, true) ? native : dense(native);
  Tensor made = new_blocks(x.shape());
  reorder(strided(from.shape(), from.strides()), from.data(), blocks_desc(x.shape()), made.mutable_data());
  return made;
}

}  // namespace ballast::ops
