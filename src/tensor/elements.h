// SPDX-License-Identifier: Apache-2.0
// Elements of a tensor, block by block: as they are stored, or cast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ballast/tensor.h"
#include "tensor/cast.h"
#include "tensor/describe.h"
#include "tensor/meaning.h"

namespace ballast {

class ElementReader {
 public:
  /// The tensor lives as long. A complex or quantized element is read as the numbers it is made of.
  explicit ElementReader(const Tensor& tensor)
      : tensor_(tensor), stored_(meaning_of(tensor.dtype()).stored) {}

  [[nodiscard]] DType stored() const { return stored_; }

  /// Elements [first, first + count), in place of those read before. `first` is a multiple of 8, which begins
  /// on a byte in every dtype.
  std::span<const std::byte> read(std::uint64_t first, std::uint64_t count) {
    const auto size = static_cast<std::size_t>(bytes_of(stored_, count));
    if (size > capacity_) raw_ = std::make_unique_for_overwrite<std::byte[]>(capacity_ = size);
    const std::span bytes(raw_.get(), size);
    tensor_.read(bytes_of(stored_, first), bytes);
    return bytes;
  }

  /// Those read last, from number `at` on, a multiple of 8 too.
  [[nodiscard]] const std::byte* raw(std::uint64_t at) const { return raw_.get() + bytes_of(stored_, at); }

  /// The same, as numbers of type T.
  template <class T>
  void cast(std::uint64_t at, std::span<T> out) const {
    cast_elements(stored_, raw(at), dtype_of<T>, reinterpret_cast<std::byte*>(out.data()), out.size());
  }

 private:
  const Tensor& tensor_;
  DType stored_;
  std::size_t capacity_ = 0;
  std::unique_ptr<std::byte[]> raw_;
};

}  // namespace ballast
