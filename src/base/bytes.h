// SPDX-License-Identifier: Apache-2.0
// A cursor over bytes that never leaves them: every read is checked against what is left, and a short read is
// an Error that names the file, the offset and the two numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/fail.h"

namespace ballast {

static_assert(std::endian::native == std::endian::little, "Ballast is written for little-endian machines");

/// A little-endian number at `bytes`; the caller knows it is there.
template <class T>
requires std::is_trivially_copyable_v<T>

[[nodiscard]] T load_le(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[nodiscard]] inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Two hexadecimal digits.
inline void append_hex(std::string& out, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 15U];
}

class ByteReader {
 public:
  /// `base` is where `bytes` begin in the file: offsets in messages count from the file's start.
  ByteReader(std::span<const std::byte> bytes, std::string where, std::uint64_t base = 0)
      : bytes_(bytes), where_(std::move(where)), base_(base) {}

  [[nodiscard]] std::size_t position() const noexcept { return position_; }

  [[nodiscard]] std::uint64_t file_offset() const noexcept { return base_ + position_; }

  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - position_; }

  [[nodiscard]] bool at_end() const noexcept { return left() == 0; }

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  void seek(std::size_t position) {
    if (position > bytes_.size()) short_read(position - position_);
    position_ = position;
  }

  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count) {
    if (count > left()) short_read(count);
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += static_cast<std::size_t>(count);
    return taken;
  }

  [[nodiscard]] std::string_view take_text(std::uint64_t count) { return as_text(take(count)); }

  template <class T>
  [[nodiscard]] T take_le() {
    return load_le<T>(take(sizeof(T)).data());
  }

 private:
  [[noreturn]] void short_read(std::uint64_t count) const {
    fail(Errc::truncated, where_, "needs {} bytes at offset {}, {} are left (cut short, or a wrong length?)",
         count, file_offset(), left());
  }

  std::span<const std::byte> bytes_;
  std::string where_;
  std::uint64_t base_;
  std::size_t position_ = 0;
};

}  // namespace ballast
