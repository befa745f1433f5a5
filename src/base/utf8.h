// SPDX-License-Identifier: Apache-2.0
// Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

struct CodePoint {
  char32_t value;
  std::size_t size;  ///< bytes it takes; 0 when the text is not UTF-8 here
};

/// The first code point of `text`, which is not empty.
[[nodiscard]] CodePoint decode_utf8(std::string_view text) noexcept;
/// All of it, at several bytes a nanosecond (json_utf8.cpp).
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace ballast

#pragma GCC visibility pop
