// SPDX-License-Identifier: Apache-2.0
// What is known about where a stream goes: a terminal or not, how wide, and whether colour and Unicode line
// art are welcome.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tool {

enum class ColorChoice : std::uint8_t { automatic, always, never };

enum class Style : std::uint8_t { plain, bold, dim, red, green, yellow, cyan };

struct Terminal {
  bool is_terminal = false;
  bool can_redraw = false;  ///< a terminal that knows "erase to the end of the line"
  bool color = false;
  bool unicode = false;  ///< the locale is UTF-8: ×, │ and … may be used for our own marks
  int width = 80;        ///< columns; 80 when it is not a terminal
  int height = 24;

  [[nodiscard]] std::string paint(std::string_view text, Style style) const;
};

/// Looks at the descriptor, NO_COLOR, CLICOLOR_FORCE, TERM and the locale. `choice` beats them all.
[[nodiscard]] Terminal look_at(int descriptor, ColorChoice choice);

}  // namespace tool
