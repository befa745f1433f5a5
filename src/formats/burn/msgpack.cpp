// SPDX-License-Identifier: Apache-2.0
#include "formats/burn/msgpack.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/bytes.h"
#include "base/utf8.h"
#include "formats/burn/burn.h"

namespace ballast::burn {
namespace {

using Kind = MsgpackCursor::Kind;

constexpr std::size_t kWindow = 32U << 10U;

std::string_view name_of(MsgpackCursor::Kind kind) {
  switch (kind) {
    case Kind::nil:
      return "nil";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::floating:
      return "a float";
    case Kind::text:
      return "a string";
    case Kind::binary:
      return "bytes";
    case Kind::array:
      return "an array";
    case Kind::map:
      return "a map";
  }
  return "something";
}

}  // namespace

std::span<const std::byte> MsgpackCursor::take(std::size_t count) {
  if (count > left()) {
    fail(Errc::truncated, where(), "needs {} bytes at offset {}, {} are left (cut short, or a wrong length?)",
         count, position(), left());
  }
  if (count > window_.size() - at_) {
    start_ += at_;
    at_ = 0;
    window_.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(std::max(kWindow, count), source_.size() - start_)));
    source_.read(start_, window_);
  }
  const auto taken = std::span<const std::byte>(window_).subspan(at_, count);
  at_ += count;
  return taken;
}

void MsgpackCursor::pass(std::uint64_t bytes) {
  if (bytes > left()) {
    fail(Errc::truncated, where(), "{} bytes of data at offset {}, {} are left (cut short?)", bytes,
         position(), left());
  }
  if (bytes <= window_.size() - at_) {
    at_ += static_cast<std::size_t>(bytes);
    return;
  }
  start_ = position() + bytes;
  at_ = 0;
  window_.clear();
}

std::uint8_t MsgpackCursor::byte_ahead() {
  const auto byte = static_cast<std::uint8_t>(take(1)[0]);
  --at_;
  return byte;
}

std::uint64_t MsgpackCursor::big_endian(std::size_t bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : take(bytes)) value = value << 8U | static_cast<std::uint64_t>(byte);
  return value;
}

std::uint64_t MsgpackCursor::check_count(std::uint64_t count, std::uint64_t bytes_each) {
  if (count > left() / bytes_each) {
    fail(Errc::truncated, where(), "{} elements are announced at offset {}, where {} bytes are left", count,
         position(), left());
  }
  return count;
}

MsgpackCursor::Kind MsgpackCursor::peek() {
  const unsigned byte = byte_ahead();
  if (byte <= 0x7F || byte >= 0xE0) return Kind::integer;
  if (byte <= 0x8F) return Kind::map;
  if (byte <= 0x9F) return Kind::array;
  if (byte <= 0xBF) return Kind::text;
  if (byte == 0xC0) return Kind::nil;
  if (byte == 0xC2 || byte == 0xC3) return Kind::boolean;
  if (byte >= 0xC4 && byte <= 0xC6) return Kind::binary;
  if (byte == 0xCA || byte == 0xCB) return Kind::floating;
  if (byte >= 0xCC && byte <= 0xD3) return Kind::integer;
  if (byte >= 0xD9 && byte <= 0xDB) return Kind::text;
  if (byte == 0xDC || byte == 0xDD) return Kind::array;
  if (byte == 0xDE || byte == 0xDF) return Kind::map;
  fail(Errc::bad_burn, where(), "byte {:#04x} at offset {} begins nothing a Burn record is made of", byte,
       position());
}

void MsgpackCursor::unexpected(std::string_view wanted) {
  fail(Errc::bad_burn, where(), "{} at offset {}, where {} should be", name_of(peek()), position(), wanted);
}

void MsgpackCursor::nil() {
  if (peek() != Kind::nil) unexpected("nil");
  pass(1);
}

MsgpackCursor::Number MsgpackCursor::number() {
  const Kind kind = peek();
  if (kind != Kind::boolean && kind != Kind::integer && kind != Kind::floating) unexpected("a number");
  const auto byte = static_cast<unsigned>(big_endian(1));
  const auto signed_bits = [](std::int64_t value) {
    return Number{Kind::integer, value < 0, static_cast<std::uint64_t>(value)};
  };
  if (kind == Kind::boolean) return {kind, false, byte & 1U};
  if (byte <= 0x7F) return {kind, false, byte};
  if (byte >= 0xE0) return signed_bits(static_cast<std::int8_t>(byte));
  switch (byte) {
    case 0xCA:
      return {kind, false,
              std::bit_cast<std::uint64_t>(
                  static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(big_endian(4)))))};
    case 0xCB:
      return {kind, false, big_endian(8)};
    case 0xCC:
    case 0xCD:
    case 0xCE:
    case 0xCF:
      return {kind, false, big_endian(std::size_t{1} << (byte - 0xCC))};
    case 0xD0:
      return signed_bits(static_cast<std::int8_t>(big_endian(1)));
    case 0xD1:
      return signed_bits(static_cast<std::int16_t>(big_endian(2)));
    case 0xD2:
      return signed_bits(static_cast<std::int32_t>(big_endian(4)));
    default:
      return signed_bits(static_cast<std::int64_t>(big_endian(8)));
  }
}

std::uint64_t MsgpackCursor::unsigned_number() {
  if (peek() != Kind::integer) unexpected("a number");
  const std::uint64_t offset = position();
  const Number value = number();
  if (value.negative)
    fail(Errc::bad_burn, where(), "a negative number at offset {}, where a size should be", offset);
  return value.bits;
}

std::string MsgpackCursor::text(std::uint64_t longest) {
  if (peek() != Kind::text) unexpected("a string");
  const auto byte = static_cast<unsigned>(big_endian(1));
  const std::uint64_t size = byte <= 0xBF ? byte & 0x1FU : big_endian(std::size_t{1} << (byte - 0xD9));
  if (size > longest)
    fail(Errc::bad_name, where(), "a string of {} bytes at offset {}, at most {} are read", size, position(),
         longest);
  const std::uint64_t offset = position();
  std::string value(as_text(take(static_cast<std::size_t>(size))));
  if (!is_utf8(value)) fail(Errc::bad_utf8, where(), "the string at offset {} is not UTF-8", offset);
  return value;
}

MsgpackCursor::Range MsgpackCursor::binary() {
  if (peek() != Kind::binary) unexpected("bytes");
  const auto byte = static_cast<unsigned>(big_endian(1));
  const std::uint64_t size = big_endian(std::size_t{1} << ((byte - 0xC4) & 3U));
  const Range range{position(), size};
  pass(size);
  return range;
}

std::uint64_t MsgpackCursor::array() {
  if (peek() != Kind::array) unexpected("an array");
  const auto byte = static_cast<unsigned>(big_endian(1));
  return check_count(byte <= 0x9F ? byte & 0x0FU : big_endian(byte == 0xDC ? 2 : 4), 1);
}

std::uint64_t MsgpackCursor::map() {
  if (peek() != Kind::map) unexpected("a map");
  const auto byte = static_cast<unsigned>(big_endian(1));
  return check_count(byte <= 0x8F ? byte & 0x0FU : big_endian(byte == 0xDE ? 2 : 4), 2);
}

void MsgpackCursor::skip(int depth) {
  if (depth > kMaxDepth)
    fail(Errc::too_deep, where(), "nested more than {} deep at offset {}", kMaxDepth, position());
  switch (peek()) {
    case Kind::nil:
      return nil();
    case Kind::boolean:
    case Kind::integer:
    case Kind::floating:
      return static_cast<void>(number());
    case Kind::binary:
      return static_cast<void>(binary());
    case Kind::text: {
      const auto byte = static_cast<unsigned>(big_endian(1));
      return pass(byte <= 0xBF ? byte & 0x1FU : big_endian(std::size_t{1} << (byte - 0xD9)));
    }
    case Kind::array:
      for (std::uint64_t count = array(); count > 0; --count) skip(depth + 1);
      return;
    case Kind::map:
      for (std::uint64_t count = map(); count > 0; --count) {
        skip(depth + 1);
        skip(depth + 1);
      }
  }
}

void MsgpackWriter::put(std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = bytes; i-- > 0;) out_ += static_cast<char>(value >> (8 * i));
}

void MsgpackWriter::header(std::uint64_t count, unsigned small, std::uint64_t small_limit, unsigned code16) {
  if (count < small_limit) return put(small | count, 1);
  const bool wide = count > 0xFFFF;
  put(code16 + (wide ? 1 : 0), 1);
  put(count, wide ? 4 : 2);
}

void MsgpackWriter::unsigned_number(std::uint64_t value) {
  if (value <= 0x7F) return put(value, 1);
  unsigned width = 0;
  while (width < 3 && value >> (8U << width) != 0) ++width;
  put(0xCC + width, 1);
  put(value, std::size_t{1} << width);
}

void MsgpackWriter::scalar(const Scalar& value) {
  switch (value.type) {
    case Scalar::Type::UInt:
      return unsigned_number(value.bits);
    case Scalar::Type::Bool:
      return put(value.bits != 0 ? 0xC3 : 0xC2, 1);
    case Scalar::Type::Float:
      put(0xCB, 1);
      return put(value.bits, 8);
    case Scalar::Type::Int:
      put(0xD3, 1);
      return put(value.bits, 8);
  }
}

void MsgpackWriter::text(std::string_view value) {
  if (value.size() > 31 && value.size() <= 0xFF) {
    put(0xD9, 1);
    put(value.size(), 1);
  } else {
    header(value.size(), 0xA0, 32, 0xDA);
  }
  out_ += value;
}

void MsgpackWriter::binary_header(std::uint64_t size) {
  const unsigned width = size > 0xFFFF ? 2 : size > 0xFF ? 1 : 0;
  put(0xC4 + width, 1);
  put(size, std::size_t{1} << width);
}

void MsgpackWriter::array(std::uint64_t count) {
  header(count, 0x90, 16, 0xDC);
}

void MsgpackWriter::map(std::uint64_t count) {
  header(count, 0x80, 16, 0xDE);
}

std::string MsgpackWriter::take() {
  return std::exchange(out_, {});
}

}  // namespace ballast::burn
