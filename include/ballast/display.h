// SPDX-License-Identifier: Apache-2.0
// Text from a file, made safe to show: terminal control bytes, bidirectional overrides and invalid UTF-8
// become visible escapes, and overlong text is cut with its length shown. Every message of the library and
// every table of the tool goes through here; so should a program that prints names it found in a file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ballast {

inline constexpr std::size_t kDisplayLimit = 512;  // bytes of source text shown before it is cut

/// `text` with everything unprintable as `\xNN` or `\u{...}`; cut after `limit` bytes as "abc… (12345
/// bytes)".
[[nodiscard]] std::string display(std::string_view text, std::size_t limit = kDisplayLimit);

/// display() in double quotes, with quotes and backslashes escaped: for names inside sentences.
[[nodiscard]] std::string quoted(std::string_view text);

// Where <iomanip> is included, std::quoted() would be found for these, and would fit better.
[[nodiscard]] inline std::string quoted(const std::string& text) {
  return quoted(std::string_view(text));
}

[[nodiscard]] inline std::string quoted(std::string& text) {
  return quoted(std::string_view(text));
}

[[nodiscard]] inline std::string quoted(const char* text) {
  return quoted(std::string_view(text));
}

}  // namespace ballast
