// SPDX-License-Identifier: Apache-2.0
#include "ballast/display.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

#include "base/utf8.h"

namespace ballast {
namespace {

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
    const CodePoint point = decode_utf8(text.substr(at));
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
