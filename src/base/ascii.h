// SPDX-License-Identifier: Apache-2.0
// Characters of ASCII, whatever the locale.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace ballast {

[[nodiscard]] constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// True for an empty text, too.
[[nodiscard]] constexpr bool all_digits(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), is_digit);
}

[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string lowered(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
  return lower;
}

}  // namespace ballast
