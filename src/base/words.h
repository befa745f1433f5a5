// SPDX-License-Identifier: Apache-2.0
// Lists of words that are known when the program is compiled.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace ballast {

using Words = std::span<const std::string_view>;

[[nodiscard]] inline bool is_among(Words words, std::string_view one) {
  return std::find(words.begin(), words.end(), one) != words.end();
}

[[nodiscard]] inline bool ends_with_one(Words ends, std::string_view text) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.ends_with(end); });
}

}  // namespace ballast
