// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/utf8.h"

namespace ballast {
namespace {

struct CodeRange {
  char32_t first;
  char32_t last;
};

// Control characters, line and paragraph separators, and what reorders, hides or has no shape of its own: the
// format characters of Unicode 15 (Cf), its variation selectors, fillers and joiners, tags, and code points
// that are no characters.
constexpr CodeRange kUnprintable[] = {
    {0x0000, 0x001F},   {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x034F, 0x034F},   {0x0600, 0x0605},
    {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},   {0x0890, 0x0891},   {0x08E2, 0x08E2},
    {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},
    {0x2060, 0x206F},   {0x3164, 0x3164},   {0xFDD0, 0xFDEF},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},   {0xFFFE, 0xFFFF},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
    {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

bool is_unprintable(char32_t c) {
  const auto* range = std::lower_bound(std::begin(kUnprintable), std::end(kUnprintable), c,
                                       [](const CodeRange& r, char32_t value) { return r.last < value; });
  return range != std::end(kUnprintable) && c >= range->first;
}

/// How many bytes at the beginning need no second look; most names are nothing else.
std::size_t plain_prefix(std::string_view text, bool in_quotes) {
  const auto* end = std::find_if(text.begin(), text.end(), [in_quotes](char c) {
    return c < 0x20 || c == 0x7F ||
           (in_quotes && (c == '"' || c == '\\'));  // char is signed: no ASCII is < 0
  });
  return static_cast<std::size_t>(end - text.begin());
}

void append_byte(std::string& out, char32_t byte) {
  out += "\\x";
  append_hex(out, static_cast<unsigned char>(byte));
}

std::string escape(std::string_view text, std::size_t limit, bool in_quotes) {
  std::size_t at = plain_prefix(text.substr(0, limit), in_quotes);
  std::string out(text.substr(0, at));
  while (at < text.size() && at < limit) {
    const CodePoint point = decode_utf8(text.substr(at));
    if (point.size == 0) {
      append_byte(out, point.value);
      ++at;
      continue;
    }
    if (is_unprintable(point.value)) {
      if (point.value == '\n')
        out += "\\n";
      else if (point.value == '\t')
        out += "\\t";
      else if (point.value == '\r')
        out += "\\r";
      else if (point.value < 0x80)
        append_byte(out, point.value);
      else
        fmt::format_to(std::back_inserter(out), "\\u{{{:x}}}", static_cast<std::uint32_t>(point.value));
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

std::string display(std::string_view text, std::size_t limit) {
  return escape(text, limit, false);
}

std::string quoted(std::string_view text) {
  return '"' + escape(text, kDisplayLimit, true) + '"';
}

}  // namespace ballast
