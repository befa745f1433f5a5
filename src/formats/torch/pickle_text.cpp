// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/pickle_text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/ascii.h"
#include "base/decimal.h"
#include "formats/pickle_opcodes.h"
#include "formats/torch/pickle.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kMaxDigits = 1236;  // of kMaxIntegerBytes and a sign

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// `count` hex digits at `text`, or nullopt.
std::optional<char32_t> hex_number(std::string_view text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  char32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) return std::nullopt;
    value = value << 4U | static_cast<char32_t>(digit);
  }
  return value;
}

// Length of the UTF-8 sequence at `text`, 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0 && continues(1)) return 2;
  if (lead >= 0xE0 && lead < 0xF0 && continues(1) && continues(2))
    return lead == 0xE0 && byte(1) < 0xA0 ? 0 : 3;
  if (lead >= 0xF0 && lead < 0xF5 && continues(1) && continues(2) && continues(3)) {
    return (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F) ? 0 : 4;
  }
  return 0;
}

}  // namespace

bool is_ascii(std::string_view text) noexcept {
  while (text.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    if ((word & 0x8080808080808080U) != 0) return false;
    text.remove_prefix(8);
  }
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_python_text(std::string_view text) noexcept {
  if (is_ascii(text)) return true;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_decimal(std::string_view text) noexcept {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.size() > kMaxDigits) return false;
  if (digits[0] == '0' && text.size() > 1) return false;  // "-0" too
  return all_digits(digits);
}

// Two's complement, little-endian, as short as it can be.
std::string twos_complement(std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  std::vector<std::uint32_t> words;  // magnitude, lowest first
  for (const char digit : decimal.substr(negative ? 1 : 0)) {
    auto carry = static_cast<std::uint64_t>(digit - '0');
    for (std::uint32_t& word : words) {
      carry += std::uint64_t{word} * 10;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32U;
    }
    if (carry != 0) words.push_back(static_cast<std::uint32_t>(carry));
  }
  words.push_back(0);  // room for the sign
  if (negative) {
    std::uint64_t carry = 1;
    for (std::uint32_t& word : words) {
      carry += static_cast<std::uint32_t>(~word);
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32U;
    }
  }
  std::string bytes(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint32_t));
  const char filler = negative ? '\xFF' : '\0';
  while (bytes.size() > 1 && bytes.back() == filler && ((bytes[bytes.size() - 2] ^ filler) & 0x80) == 0)
    bytes.pop_back();
  return bytes;
}

std::optional<double> parse_float(std::string_view text) noexcept {
  if (text.size() > 1000 || text.find('(') != std::string_view::npos) return std::nullopt;  // "nan(…)"
  return double_of(text);
}

void append_utf8(std::string& out, char32_t c) {
  const auto byte = [&](char32_t bits) { out += static_cast<char>(static_cast<unsigned char>(bits)); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) {
    byte(0xC0U | c >> 6U);
  } else if (c < 0x10000) {
    byte(0xE0U | c >> 12U);
    byte(0x80U | (c >> 6U & 0x3FU));
  } else {
    byte(0xF0U | c >> 18U);
    byte(0x80U | (c >> 12U & 0x3FU));
    byte(0x80U | (c >> 6U & 0x3FU));
  }
  byte(0x80U | (c & 0x3FU));
}

std::optional<std::string> unquote(std::string_view quoted) {
  if (quoted.size() < 2 || (quoted.front() != '\'' && quoted.front() != '"') ||
      quoted.back() != quoted.front())
    return std::nullopt;
  quoted = quoted.substr(1, quoted.size() - 2);
  constexpr std::string_view kNames = "abfnrtv\\'\"";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  std::string out;
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      out += quoted[i];
      continue;
    }
    if (++i == quoted.size()) return std::nullopt;
    const char c = quoted[i];
    if (const auto simple = kNames.find(c); simple != std::string_view::npos) {
      out += kMeanings[simple];
    } else if (c == 'x') {
      const auto value = hex_number(quoted.substr(i + 1), 2);
      if (!value) return std::nullopt;
      out += static_cast<char>(static_cast<unsigned char>(*value));
      i += 2;
    } else if (c >= '0' && c <= '7') {
      unsigned value = 0;
      std::size_t digits = 0;
      for (;
           digits < 3 && i + digits < quoted.size() && quoted[i + digits] >= '0' && quoted[i + digits] <= '7';
           ++digits) {
        value = value * 8 + static_cast<unsigned>(quoted[i + digits] - '0');
      }
      out += static_cast<char>(static_cast<unsigned char>(value));
      i += digits - 1;
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

std::optional<std::string> decode_raw_unicode_escape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size() || (text[i + 1] != 'u' && text[i + 1] != 'U')) {
      append_utf8(out, static_cast<unsigned char>(text[i]));
      // A backslash behind a backslash begins no escape.
      if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '\\') out += text[++i];
      continue;
    }
    const std::size_t count = text[i + 1] == 'u' ? 4 : 8;
    const auto value = hex_number(text.substr(i + 2), count);
    if (!value || *value > 0x10FFFF) return std::nullopt;
    append_utf8(out, *value);
    i += 1 + count;
  }
  return out;
}

std::optional<std::string> encode_latin1(std::string_view utf8) {
  if (is_ascii(utf8)) return std::string(utf8);
  std::string out;
  out.reserve(utf8.size());
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    if (lead < 0x80) {
      out += utf8[i];
    } else if ((lead == 0xC2 || lead == 0xC3) && i + 1 < utf8.size()) {
      out += static_cast<char>(
          static_cast<unsigned char>((lead & 3U) << 6U | (static_cast<unsigned char>(utf8[i + 1]) & 0x3FU)));
      ++i;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::size_t> pickle_length(std::span<const std::byte> bytes) {
  for (std::size_t at = 0;;) {
    const auto length = pickle_opcode_length(bytes.subspan(at));
    if (!length) return std::nullopt;
    const bool is_last = bytes[at] == std::byte{'.'};
    at += *length;
    if (is_last) return at;
  }
}

bool may_be_pickle(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return false;
  // What a pickler writes first: PROTO, or a value of protocol 0 or 1.
  constexpr std::string_view kFirst = "\x80()]}NIJKLMFGSTUVXci";
  return kFirst.find(static_cast<char>(bytes[0])) != std::string_view::npos;
}

}  // namespace ballast::torch
