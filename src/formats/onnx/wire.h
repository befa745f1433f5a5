// SPDX-License-Identifier: Apache-2.0
// Protocol Buffers on the wire, as far as ONNX files need them:
//
//   1. a message is a run of fields: tag, value, tag, value, …
//   2. tag    a varint: number of the field × 8 + wire type
//   3. value  wire type 0: a varint (7 bits a byte, lowest first); 1: 8 bytes; 5: 4 bytes;
//             2: a varint with the length of what follows (text, bytes, a message, packed numbers)
//
// Nothing is kept and nothing is copied but what is asked for: a model's weights are stepped over, not read.
// Bytes that are parsed are read into a small window, so that a file which shrinks gives an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/source_storage.h"

namespace ballast::onnx_file {

/// Bytes [begin, end) of the file.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }

  [[nodiscard]] bool empty() const noexcept { return begin == end; }
};

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t value = 0;  ///< of a varint
  Range range;              ///< of everything else
  std::uint64_t at = 0;     ///< where its tag begins
};

class WireReader {
 public:
  explicit WireReader(const ByteSource& source) : source_(source) {}

  [[nodiscard]] const std::string& where() const noexcept { return source_.where(); }

  [[nodiscard]] const ByteSource& source() const noexcept { return source_; }

  [[nodiscard]] Range whole() const noexcept { return {0, source_.size()}; }

  /// Takes the first field off `message`; false when there is none left. Errc::truncated where the file ends
  /// too early, Errc::bad_onnx for what is no field.
  [[nodiscard]] bool next(Range& message, Field& field);
  /// Takes a number off packed ones.
  [[nodiscard]] std::uint64_t take_varint(Range& packed);

  /// The value of a field that must be of this kind; `what` is its name.
  [[nodiscard]] std::uint64_t number(const Field& field, std::string_view what) const;
  [[nodiscard]] Range message(const Field& field, std::string_view what) const;
  /// UTF-8, at most `most` bytes: Errc::bad_utf8, header_too_large.
  [[nodiscard]] std::string text(const Field& field, std::string_view what, std::uint64_t most);
  void read(std::uint64_t offset, std::span<std::byte> out) const { source_.read(offset, out); }

 private:
  [[nodiscard]] std::uint8_t byte_at(std::uint64_t offset) {
    if (offset < start_ || offset - start_ >= window_.size()) fill(offset);
    return static_cast<std::uint8_t>(window_[static_cast<std::size_t>(offset - start_)]);
  }

  void fill(std::uint64_t offset);
  void require(const Field& field, Wire wire, std::string_view what) const;
  [[noreturn]] void cut(const Range& message, std::uint64_t at, std::uint64_t needed) const;

  const ByteSource& source_;
  std::vector<std::byte> window_;
  std::uint64_t start_ = 0;  // of the window in the file
  std::uint64_t step_ = 0;   // how much the last fill read
};

}  // namespace ballast::onnx_file
