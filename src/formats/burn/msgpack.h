// SPDX-License-Identifier: Apache-2.0
// MessagePack, read with a cursor that never holds more than a window of the file, and written. Only what
// Burn's records are made of; extension types are refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/burn/parts.h"
#include "tensor/source_storage.h"

namespace ballast::burn {

inline constexpr std::uint64_t kLongestText = 4096;  ///< that is held in memory

class MsgpackCursor {
 public:
  enum class Kind : std::uint8_t { nil, boolean, integer, floating, text, binary, array, map };

  /// Bytes that stay where they are.
  struct Range {
    std::uint64_t offset;
    std::uint64_t size;
  };

  /// A number as it stands: negative ones are two's complement in `bits`, floating ones those of a double.
  struct Number {
    Kind kind;  // boolean, integer, floating
    bool negative;
    std::uint64_t bits;
  };

  explicit MsgpackCursor(const ByteSource& source) : source_(source) {}

  [[nodiscard]] std::uint64_t position() const noexcept { return start_ + at_; }

  [[nodiscard]] bool at_end() const noexcept { return position() == source_.size(); }

  [[nodiscard]] const std::string& where() const noexcept { return source_.where(); }

  [[nodiscard]] Kind peek();

  // Each of these takes the next thing, which must be of its kind.
  void nil();
  [[nodiscard]] Number number();
  [[nodiscard]] std::uint64_t unsigned_number();
  /// Errc::bad_name when it is longer; Errc::bad_utf8.
  [[nodiscard]] std::string text(std::uint64_t longest = kLongestText);
  [[nodiscard]] Range binary();
  /// How many elements, or pairs, follow; never more than there are bytes left for.
  [[nodiscard]] std::uint64_t array();
  [[nodiscard]] std::uint64_t map();
  /// Any value, with everything in it. `depth` is how deep it lies.
  void skip(int depth);

  [[noreturn]] void unexpected(std::string_view wanted);

 private:
  [[nodiscard]] std::uint64_t left() const noexcept { return source_.size() - position(); }

  [[nodiscard]] std::span<const std::byte> take(std::size_t count);
  [[nodiscard]] std::uint8_t byte_ahead();
  [[nodiscard]] std::uint64_t big_endian(std::size_t bytes);
  [[nodiscard]] std::uint64_t check_count(std::uint64_t count, std::uint64_t bytes_each);
  void pass(std::uint64_t bytes);

  const ByteSource& source_;
  std::vector<std::byte> window_;
  std::uint64_t start_ = 0;  // of the window in the source
  std::size_t at_ = 0;       // in the window
};

/// Appends to a string; numbers and lengths in their shortest form, as rmp does.
class MsgpackWriter {
 public:
  void nil() { out_ += '\xC0'; }

  void unsigned_number(std::uint64_t value);
  void scalar(const Scalar& value);
  void text(std::string_view value);
  /// The bytes themselves follow, from elsewhere. At most 2^32 - 1.
  void binary_header(std::uint64_t size);
  void array(std::uint64_t count);
  void map(std::uint64_t count);

  /// What was written since the last call.
  [[nodiscard]] std::string take();

 private:
  void header(std::uint64_t count, unsigned small, std::uint64_t small_limit, unsigned code16);
  void put(std::uint64_t value, std::size_t bytes);

  std::string out_;
};

}  // namespace ballast::burn
