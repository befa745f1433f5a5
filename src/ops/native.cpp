// SPDX-License-Identifier: Apache-2.0
#include "ops/native.h"

#include <atomic>
#include <utility>

#include "base/lazy.h"
#include "ops/memory.h"
#include "tensor/copy.h"

namespace ballast::ops {
namespace {

class NativeStorage final : public Storage {
 public:
  explicit NativeStorage(Tensor native) : Storage(native.size_bytes()), native_(std::move(native)) {}

  [[nodiscard]] const std::byte* data() const override { return bytes()->data(); }

  [[nodiscard]] bool ready() const noexcept override { return bytes_.ready(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (ready()) return Storage::read(offset, out);
    native_.read(offset, out);
  }

  /// Null once the row-major bytes may have been changed.
  [[nodiscard]] const Tensor* native() const noexcept {
    return written_.load(std::memory_order_acquire) ? nullptr : &native_;
  }

 private:
  [[nodiscard]] std::byte* writable_data() override {
    const auto& mine = bytes();
    written_.store(true, std::memory_order_release);
    return mine->mutable_data();
  }

  [[nodiscard]] const std::shared_ptr<Storage>& bytes() const {
    return bytes_.get([this] {
      auto made = Storage::heap(size());
      copy_contiguous(native_, made->mutable_data());
      return made;
    });
  }

  Tensor native_;
  Lazy<std::shared_ptr<Storage>> bytes_;
  std::atomic<bool> written_{false};
};

}  // namespace

Tensor native_view(const Tensor& x) {
  const auto* storage = dynamic_cast<const NativeStorage*>(x.storage().get());
  if (storage == nullptr) return x;
  const Tensor* native = storage->native();
  const bool whole = native != nullptr && x.bit_offset() == 0 && x.dtype() == native->dtype() &&
                     x.shape() == native->shape() && x.is_contiguous();
  return whole ? *native : x;
}

Tensor row_major(const Tensor& native) {
  if (native.is_contiguous()) {
    return {native.dtype(), native.shape(), contiguous_strides(native.shape()), native.storage(),
            native.bit_offset()};
  }
  return Tensor::contiguous_view(native.dtype(), native.shape(), std::make_shared<NativeStorage>(native));
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

}  // namespace ballast::ops
