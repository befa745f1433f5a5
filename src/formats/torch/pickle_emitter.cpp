// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/pickle_emitter.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ballast/error.h"
#include "base/fail.h"
#include "formats/torch/pickle_text.h"

namespace ballast::torch {
namespace {

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

}  // namespace

void PickleEmitter::integer(std::int64_t value) {
  if (value >= 0 && value <= 0xFF) {
    out_ += 'K';
    put(out_, static_cast<std::uint8_t>(value));
  } else if (value >= 0 && value <= 0xFFFF) {
    out_ += 'M';
    put(out_, static_cast<std::uint16_t>(value));
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_ += 'J';
    put(out_, static_cast<std::int32_t>(value));
  } else {
    out_ += "\x8A\x08";  // always eight bytes: libtorch reads no other length
    put(out_, value);
  }
}

bool PickleEmitter::big_integer(std::string_view decimal) {
  if (decimal.size() > 700) return false;  // 255 bytes are at most 614 digits
  const std::string bytes = twos_complement(decimal);
  if (bytes.size() > 0xFF) return false;
  out_ += '\x8A';
  out_ += static_cast<char>(bytes.size());
  out_ += bytes;
  return true;
}

void PickleEmitter::floating(double value) {
  out_ += 'G';
  std::string bytes;
  put(bytes, std::bit_cast<std::uint64_t>(value));
  std::reverse(bytes.begin(), bytes.end());  // the one big-endian number of the format
  out_ += bytes;
}

void PickleEmitter::string(std::string_view text) {
  out_ += 'X';
  put(out_, static_cast<std::uint32_t>(text.size()));
  out_ += text;
}

std::uint32_t PickleEmitter::repeated_string(std::string_view text) {
  if (const auto found = strings_.find(text); found != strings_.end()) {
    recall(found->second);
    return found->second;
  }
  string(text);
  return strings_.emplace(text, remember()).first->second;
}

void PickleEmitter::latin1(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const std::byte byte : bytes) {
    const auto code = std::to_integer<unsigned>(byte);
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xC0U | code >> 6U);
      text += static_cast<char>(0x80U | (code & 0x3FU));
    }
  }
  string(text);
  repeated_string("latin1");
}

void PickleEmitter::global(std::string_view module, std::string_view name) {
  const KnownGlobal* known = find_known_global(module, name);
  if (known == nullptr || known->verdict != Verdict::clean) {
    fail(Errc::not_representable, "pickle", "{}.{} is no name that may be written", display(module),
         display(name));
  }
  if (const auto found = globals_.find(known); found != globals_.end()) return recall(found->second);
  out_ += 'c';
  // Protocol 2 calls it by its old name; Python 3 and PyTorch translate that.
  out_ += module == "builtins" ? "__builtin__" : module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
  globals_.emplace(known, remember());
}

void PickleEmitter::tuple(std::size_t size) {
  constexpr std::string_view kSmall = ")\x85\x86\x87";
  out_ += size < kSmall.size() ? kSmall[size] : 't';
}

void PickleEmitter::integers(ShapeView numbers) {
  if (numbers.size() > 3) mark();
  for (const std::int64_t number : numbers) integer(number);
  tuple(numbers.size());
}

void PickleEmitter::ordered_dict() {
  global("collections", "OrderedDict");
  empty_tuple();
  call();
}

std::uint32_t PickleEmitter::remember() {
  if (slots_ <= 0xFF) {
    out_ += 'q';
    put(out_, static_cast<std::uint8_t>(slots_));
  } else {
    out_ += 'r';
    put(out_, slots_);
  }
  return slots_++;
}

void PickleEmitter::recall(std::uint32_t slot) {
  if (slot <= 0xFF) {
    out_ += 'h';
    put(out_, static_cast<std::uint8_t>(slot));
  } else {
    out_ += 'j';
    put(out_, slot);
  }
}

}  // namespace ballast::torch
