// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_image.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/lazy.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

class TensorImage final : public Storage {
 public:
  TensorImage(Tensor tensor, std::string head)
      : Storage(head.size() + tensor.size_bytes()), tensor_(std::move(tensor)), head_(std::move(head)) {}

  [[nodiscard]] const std::byte* data() const override {
    const auto make = [this] {
      std::vector<std::byte> bytes(static_cast<std::size_t>(size()));
      read(0, bytes);
      return bytes;
    };
    return bytes_.get(make).data();
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    if (offset < head_.size()) {
      const std::size_t count = std::min<std::size_t>(out.size(), head_.size() - offset);
      std::memcpy(out.data(), head_.data() + offset, count);
      out = out.subspan(count);
      offset += count;
    }
    if (!out.empty()) tensor_.read(offset - head_.size(), out);
  }

  void check_unchanged() const override { tensor_.storage()->check_unchanged(); }

  void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const override {
    ballast::check_sound(tensor_);
  }

 private:
  Tensor tensor_;
  std::string head_;
  Lazy<std::vector<std::byte>> bytes_;
};

}  // namespace

std::shared_ptr<const Storage> tensor_image(const Tensor& tensor, std::string head) {
  return std::make_shared<TensorImage>(tensor, std::move(head));
}

BytesInStorage row_major_bytes(const Tensor& tensor) {
  const bool whole_bytes = info(tensor.dtype()).bits % 8 == 0 && tensor.bit_offset() % 8 == 0;
  if (whole_bytes && tensor.is_contiguous()) return {tensor.storage(), tensor.bit_offset() / 8};
  return {tensor_image(tensor), 0};
}

}  // namespace ballast
