// SPDX-License-Identifier: Apache-2.0
// One box of a strided view (layout.h), copied by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/isa.h"
#include "tensor/layout.h"

namespace ballast {

inline constexpr std::uint64_t kTileRows = 64;  // transposes go by tiles of this many rows and columns

struct CopyOptions {
  Isa isa;
  bool stream;  // the output is large and not read soon: keep it out of the cache
};

/// Elements of `size` whole bytes, from `in`, the box's first element; nothing needs to be aligned.
void copy_box(const std::byte* in, std::size_t size, const Layout& axes, std::byte* out,
              const CopyOptions& options);

/// Packs elements of fewer than 8 bits one after the other, the lowest bit of a byte first.
class BitWriter {
 public:
  explicit BitWriter(std::byte* out) : out_(out) {}

  void put(std::uint32_t code, int bits) {
    window_ |= code << filled_;
    for (filled_ += bits; filled_ >= 8; filled_ -= 8, window_ >>= 8U)
      *out_++ = static_cast<std::byte>(window_ & 0xFFU);
  }

  /// Between two bytes: the next element begins one.
  [[nodiscard]] bool on_byte() const { return filled_ == 0; }

  /// Whole bytes of elements; on_byte() must hold.
  void put_bytes(const std::byte* bytes, std::size_t count) {
    std::memcpy(out_, bytes, count);
    out_ += count;
  }

  void finish() {
    if (filled_ > 0) *out_ = static_cast<std::byte>(window_);
  }

 private:
  std::byte* out_;
  std::uint32_t window_ = 0;
  int filled_ = 0;
};

/// Elements of `bits` < 8 bits; `start` is the first one's, counted in bits from `base`.
void copy_bit_box(const std::byte* base, std::int64_t start, int bits, const Layout& axes, BitWriter& writer);

}  // namespace ballast
