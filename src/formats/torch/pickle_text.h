// SPDX-License-Identifier: Apache-2.0
// The text inside pickles: UTF-8 as Python writes it, the text lines of protocol 0, and finding a pickle's
// end without running it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ballast::torch {

[[nodiscard]] bool is_ascii(std::string_view text) noexcept;
/// UTF-8, with single surrogates allowed: Python keeps undecodable file names in them.
[[nodiscard]] bool is_python_text(std::string_view text) noexcept;
/// Digits without a needless zero, perhaps after a minus, as picklers write them; no more than a sane number
/// has.
[[nodiscard]] bool is_decimal(std::string_view text) noexcept;
/// Of decimal digits: little-endian, as short as it can be.
[[nodiscard]] std::string twos_complement(std::string_view decimal);
[[nodiscard]] std::optional<double> parse_float(std::string_view text) noexcept;
/// Python 2's repr of a str: quotes off, escapes resolved.
[[nodiscard]] std::optional<std::string> unquote(std::string_view quoted);
/// Latin-1 with \uXXXX and \UXXXXXXXX, to UTF-8.
[[nodiscard]] std::optional<std::string> decode_raw_unicode_escape(std::string_view text);
/// UTF-8 to Latin-1: how Python 3 writes bytes in protocol 2. Nullopt when a character is beyond U+00FF.
[[nodiscard]] std::optional<std::string> encode_latin1(std::string_view utf8);
/// UCS-4 to UTF-8: NumPy's text.
void append_utf8(std::string& out, char32_t character);

}  // namespace ballast::torch
