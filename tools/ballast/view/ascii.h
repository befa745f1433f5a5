// SPDX-License-Identifier: Apache-2.0
// Letters of names and header fields, whatever the locale.
#pragma once

#include <string>
#include <string_view>

namespace tool::view {

[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace tool::view
