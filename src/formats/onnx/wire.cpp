// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/wire.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/utf8.h"

namespace ballast::onnx_file {
namespace {

constexpr std::uint64_t kFirstStep = 4096;  // behind a jump over weights not much is wanted
constexpr std::uint64_t kLargestStep = 65536;
constexpr std::uint64_t kMaxFieldNumber = (1U << 29U) - 1;  // the specification's
constexpr unsigned kMaxVarintBytes = 10;

}  // namespace

void WireReader::fill(std::uint64_t offset) {
  const bool goes_on = !window_.empty() && offset == start_ + window_.size();
  step_ = goes_on ? std::min(step_ * 2, kLargestStep) : kFirstStep;
  window_.resize(static_cast<std::size_t>(std::min(step_, source_.size() - offset)));
  start_ = offset;
  source_.read(offset, window_);
}

void WireReader::cut(const Range& message, std::uint64_t at, std::uint64_t needed) const {
  if (message.end == source_.size()) {
    fail(Errc::truncated, where(), "needs {} bytes at offset {}, {} are left (cut short?)", needed, at,
         message.end - at);
  }
  fail(Errc::bad_onnx, where(),
       "a field of {} bytes at offset {} reaches out of its message, which ends at {}", needed, at,
       message.end);
}

std::uint64_t WireReader::take_varint(Range& packed) {
  std::uint64_t value = 0;
  const std::uint64_t begin = packed.begin;
  for (unsigned i = 0; i < kMaxVarintBytes; ++i) {
    if (packed.empty()) cut(packed, begin, i + 1);
    const std::uint64_t byte = byte_at(packed.begin++);
    value |= (byte & 0x7FU) << (7 * i);
    if (byte < 0x80) {
      if (i == kMaxVarintBytes - 1 && byte > 1)
        fail(Errc::bad_onnx, where(), "a number of more than 64 bits at offset {}", begin);
      return value;
    }
  }
  fail(Errc::bad_onnx, where(), "a number of more than {} bytes at offset {}", kMaxVarintBytes, begin);
}

bool WireReader::next(Range& message, Field& field) {
  if (message.empty()) return false;
  field.at = message.begin;
  const std::uint64_t tag = take_varint(message);
  const std::uint64_t number = tag >> 3U;
  if (number == 0 || number > kMaxFieldNumber)
    fail(Errc::bad_onnx, where(), "a field of number {} at offset {} (not an ONNX file?)", number, field.at);
  field.number = static_cast<std::uint32_t>(number);
  std::uint64_t size = 0;
  switch (tag & 7U) {
    case 0:
      field.wire = Wire::varint;
      field.value = take_varint(message);
      return true;
    case 1:
      field.wire = Wire::fixed64;
      size = 8;
      break;
    case 2:
      field.wire = Wire::bytes;
      size = take_varint(message);
      break;
    case 5:
      field.wire = Wire::fixed32;
      size = 4;
      break;
    default:
      fail(Errc::bad_onnx, where(), "wire type {} at offset {} (not an ONNX file?)", tag & 7U, field.at);
  }
  if (size > message.size()) cut(message, message.begin, size);
  field.range = {message.begin, message.begin + size};
  message.begin += size;
  return true;
}

void WireReader::require(const Field& field, Wire wire, std::string_view what) const {
  if (field.wire == wire) return;
  fail(Errc::bad_onnx, where(), "{} at offset {} has wire type {}, {} is expected", what, field.at,
       static_cast<unsigned>(field.wire), static_cast<unsigned>(wire));
}

std::uint64_t WireReader::number(const Field& field, std::string_view what) const {
  require(field, Wire::varint, what);
  return field.value;
}

Range WireReader::message(const Field& field, std::string_view what) const {
  require(field, Wire::bytes, what);
  return field.range;
}

std::string WireReader::text(const Field& field, std::string_view what, std::uint64_t most) {
  require(field, Wire::bytes, what);
  if (field.range.size() > most)
    fail(Errc::header_too_large, where(), "{} at offset {} has {} bytes, at most {} are read", what, field.at,
         field.range.size(), most);
  std::string text(static_cast<std::size_t>(field.range.size()), '\0');
  // Short texts mostly lie in the window already.
  const std::uint64_t begin = field.range.begin;
  if (begin >= start_ && begin - start_ <= window_.size() && window_.size() - (begin - start_) >= text.size())
    as_text(window_).copy(text.data(), text.size(), static_cast<std::size_t>(begin - start_));
  else
    source_.read(begin, std::as_writable_bytes(std::span(text)));
  if (!is_utf8(text)) fail(Errc::bad_utf8, where(), "{} at offset {} is not UTF-8", what, field.at);
  return text;
}

}  // namespace ballast::onnx_file
