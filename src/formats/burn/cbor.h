// SPDX-License-Identifier: Apache-2.0
// CBOR (RFC 8949), as far as Burnpack's metadata goes: definite lengths, text keys, integers, floats,
// booleans. The cursor allocates nothing but the strings it hands out, and every length is checked against
// the bytes left.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "formats/burn/parts.h"

namespace ballast::burn {

class CborCursor {
 public:
  enum class Kind : std::uint8_t { unsigned_integer, negative_integer, text, array, map, other };

  /// `base` is where `bytes` begin in the file.
  CborCursor(std::span<const std::byte> bytes, std::string where, std::uint64_t base)
      : in_(bytes, std::move(where), base) {}

  [[nodiscard]] const std::string& where() const noexcept { return in_.where(); }

  [[nodiscard]] std::uint64_t offset() const noexcept { return in_.file_offset(); }

  [[nodiscard]] bool at_end() const noexcept { return in_.at_end(); }

  [[nodiscard]] Kind peek();

  // Each of these takes the next thing, which must be of its kind.
  [[nodiscard]] std::uint64_t unsigned_number();
  /// A view of the bytes. Errc::bad_utf8.
  [[nodiscard]] std::string_view text();
  /// How many elements, or pairs, follow.
  [[nodiscard]] std::uint64_t array();
  [[nodiscard]] std::uint64_t map();
  /// {"Float": 0.5}, with the map around it.
  [[nodiscard]] Scalar scalar();
  /// Any value with everything in it.
  void skip(int depth);

  /// Calls member(key) for each pair; it must take the value.
  template <class Member>
  void object(Member&& member) {
    for (std::uint64_t count = map(); count > 0; --count) member(text());
  }

 private:
  struct Head {
    unsigned major;
    unsigned info;
    std::uint64_t value;
  };

  [[nodiscard]] Head head();
  [[nodiscard]] Head head(unsigned major, std::string_view wanted);
  [[nodiscard]] std::uint64_t checked(std::uint64_t count, std::uint64_t bytes_each);

  ByteReader in_;
};

/// Lengths and integers in their shortest form.
class CborWriter {
 public:
  void unsigned_number(std::uint64_t value) { head(0, value); }

  void text(std::string_view value) {
    head(3, value.size());
    out_ += value;
  }

  void array(std::uint64_t count) { head(4, count); }

  void map(std::uint64_t count) { head(5, count); }

  void scalar(const Scalar& value);

  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  void head(unsigned major, std::uint64_t value);
  void put(std::uint64_t value, std::size_t bytes);

  std::string out_;
};

}  // namespace ballast::burn
