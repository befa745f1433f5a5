// SPDX-License-Identifier: Apache-2.0
#include "formats/burn/cbor.h"

#include <bit>

#include "ballast/error.h"
#include "base/utf8.h"
#include "formats/burn/burn.h"
#include "tensor/half.h"

namespace ballast::burn {
namespace {

// Major types, and the argument of major type 7.
enum : unsigned { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };

enum : unsigned { kFalse = 20, kTrue = 21, kHalf = 25, kSingle = 26, kDouble = 27 };

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63U;

}  // namespace

CborCursor::Kind CborCursor::peek() {
  const std::size_t position = in_.position();
  const unsigned major = static_cast<unsigned>(in_.take(1)[0]) >> 5U;
  in_.seek(position);
  switch (major) {
    case kUnsigned:
      return Kind::unsigned_integer;
    case kNegative:
      return Kind::negative_integer;
    case kText:
      return Kind::text;
    case kArray:
      return Kind::array;
    case kMap:
      return Kind::map;
    default:
      return Kind::other;
  }
}

CborCursor::Head CborCursor::head() {
  const std::uint64_t at = offset();
  const auto byte = static_cast<unsigned>(in_.take(1)[0]);
  Head head{byte >> 5U, byte & 0x1FU, byte & 0x1FU};
  if (head.info < 24) return head;
  if (head.info > 27)
    fail(Errc::bad_burn, where(), "byte {:#04x} at offset {}: lengths that are not told are not read", byte,
         at);
  head.value = 0;
  for (const std::byte next : in_.take(std::uint64_t{1} << (head.info - 24)))
    head.value = head.value << 8U | static_cast<std::uint64_t>(next);
  return head;
}

CborCursor::Head CborCursor::head(unsigned major, std::string_view wanted) {
  const std::uint64_t at = offset();
  const Head found = head();
  if (found.major != major)
    fail(Errc::bad_burn, where(), "something else at offset {}, where {} should be", at, wanted);
  return found;
}

std::uint64_t CborCursor::checked(std::uint64_t count, std::uint64_t bytes_each) {
  if (count > in_.left() / bytes_each) {
    fail(Errc::truncated, where(), "{} elements are announced at offset {}, where {} bytes are left", count,
         offset(), in_.left());
  }
  return count;
}

std::uint64_t CborCursor::unsigned_number() {
  return head(kUnsigned, "a number").value;
}

std::string_view CborCursor::text() {
  const std::uint64_t size = head(kText, "a string").value;
  const std::uint64_t at = offset();
  const std::string_view value = in_.take_text(size);
  if (!is_utf8(value)) fail(Errc::bad_utf8, where(), "the string at offset {} is not UTF-8", at);
  return value;
}

std::uint64_t CborCursor::array() {
  return checked(head(kArray, "an array").value, 1);
}

std::uint64_t CborCursor::map() {
  return checked(head(kMap, "a map").value, 2);
}

Scalar CborCursor::scalar() {
  using Type = Scalar::Type;
  if (map() != 1) fail(Errc::bad_burn, where(), "a scalar of several values near offset {}", offset());
  const std::string_view word = text();
  const auto type = scalar_type_from_name(word);
  if (!type) fail(Errc::bad_burn, where(), "{} is no type of a scalar", quoted(word));
  const std::uint64_t at = offset();
  const Head found = head();
  const bool is_integer = *type == Type::Int || *type == Type::UInt;
  if (is_integer && found.major == kUnsigned && (*type == Type::UInt || found.value < kSignBit))
    return {*type, found.value};
  if (*type == Type::Int && found.major == kNegative && found.value < kSignBit) return {*type, ~found.value};
  if (*type == Type::Bool && found.major == kSimple && (found.info == kTrue || found.info == kFalse))
    return {*type, found.info == kTrue ? 1U : 0U};
  if (*type == Type::Float && found.major == kSimple) {
    if (found.info == kDouble) return {*type, found.value};
    double value = 0;
    if (found.info == kSingle)
      value = std::bit_cast<float>(static_cast<std::uint32_t>(found.value));
    else if (found.info == kHalf)
      value = float_of(Half{static_cast<std::uint16_t>(found.value)});
    if (found.info == kSingle || found.info == kHalf) return {*type, std::bit_cast<std::uint64_t>(value)};
  }
  fail(Errc::bad_burn, where(), "the scalar at offset {} is no {}", at, word);
}

void CborCursor::skip(int depth) {
  if (depth > kMaxDepth)
    fail(Errc::too_deep, where(), "nested more than {} deep at offset {}", kMaxDepth, offset());
  const Head found = head();
  switch (found.major) {
    case kBytes:
    case kText:
      static_cast<void>(in_.take(found.value));
      return;
    case kArray:
      for (std::uint64_t count = checked(found.value, 1); count > 0; --count) skip(depth + 1);
      return;
    case kMap:
      for (std::uint64_t count = checked(found.value, 2); count > 0; --count) {
        skip(depth + 1);
        skip(depth + 1);
      }
      return;
    case kTag:
      return skip(depth + 1);
    default:
      return;
  }
}

void CborWriter::put(std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = bytes; i-- > 0;) out_ += static_cast<char>(value >> (8 * i));
}

void CborWriter::head(unsigned major, std::uint64_t value) {
  if (value < 24) return put(major << 5U | value, 1);
  unsigned width = 0;
  while (width < 3 && value >> (8U << width) != 0) ++width;
  put(major << 5U | (24 + width), 1);
  put(value, std::size_t{1} << width);
}

void CborWriter::scalar(const Scalar& value) {
  map(1);
  text(name_of(value.type));
  switch (value.type) {
    case Scalar::Type::UInt:
      return head(kUnsigned, value.bits);
    case Scalar::Type::Int:
      return (value.bits & kSignBit) == 0 ? head(kUnsigned, value.bits) : head(kNegative, ~value.bits);
    case Scalar::Type::Bool:
      return put(kSimple << 5U | (value.bits != 0 ? kTrue : kFalse), 1);
    case Scalar::Type::Float:
      put(kSimple << 5U | kDouble, 1);
      return put(value.bits, 8);
  }
}

}  // namespace ballast::burn
