// SPDX-License-Identifier: Apache-2.0
#include "ballast/display.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace ballast {
namespace {

struct CodePoint {
  char32_t value;
  std::size_t size;  // bytes it takes; 0 when the text is not UTF-8 here
};

// Strict UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead < 0xE0 && continues(1)) return {(lead & 0x1FU) << 6U | (byte(1) & 0x3FU), 2};
  if (lead >= 0xE0 && lead < 0xF0 && continues(1) && continues(2)) {
    const char32_t value = (lead & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5 && continues(1) && continues(2) && continues(3)) {
    const char32_t value =
        (lead & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U | (byte(3) & 0x3FU);
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4};
  }
  return {lead, 0};
}

// Control characters, and the format characters that reorder or hide text.
bool is_unprintable(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x00AD || c == 0x061C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE0FFF);
}

std::string escape(std::string_view text, std::size_t limit, bool in_quotes) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size() && at < limit) {
    const CodePoint point = decode(text.substr(at));
    if (point.size == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint32_t>(point.value));
      ++at;
      continue;
    }
    if (is_unprintable(point.value)) {
      if (point.value == '\n') out += "\\n";
      else if (point.value == '\t') out += "\\t";
      else if (point.value == '\r') out += "\\r";
      else if (point.value < 0x80) fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint32_t>(point.value));
      else fmt::format_to(std::back_inserter(out), "\\u{{{:x}}}", static_cast<std::uint32_t>(point.value));
    } else {
      if (in_quotes && (point.value == '"' || point.value == '\\')) out += '\\';
      out += text.substr(at, point.size);
    }
    at += point.size;
  }
  if (at < text.size()) fmt::format_to(std::back_inserter(out), "… ({} bytes)", text.size());
  return out;
}

}  // namespace

std::string display(std::string_view text, std::size_t limit) { return escape(text, limit, false); }

std::string quoted(std::string_view text) { return '"' + escape(text, kDisplayLimit, true) + '"'; }

}  // namespace ballast
