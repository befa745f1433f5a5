// SPDX-License-Identifier: Apache-2.0
#include "terminal.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace tool {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool wants_color(bool is_terminal, ColorChoice choice) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  if (!environment("NO_COLOR").empty()) return false;
  const std::string_view forced = environment("CLICOLOR_FORCE");
  if (!forced.empty() && forced != "0") return true;
  return is_terminal && environment("TERM") != "dumb" && environment("CLICOLOR") != "0";
}

const char* code_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::bold:
      return "\x1b[1m";
    case Style::dim:
      return "\x1b[2m";
    case Style::red:
      return "\x1b[31m";
    case Style::green:
      return "\x1b[32m";
    case Style::yellow:
      return "\x1b[33m";
    case Style::cyan:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

std::string Terminal::paint(std::string_view text, Style style) const {
  if (!color || style == Style::plain || text.empty()) return std::string(text);
  std::string painted = code_of(style);
  painted += text;
  painted += "\x1b[0m";
  return painted;
}

Terminal look_at(int descriptor, ColorChoice choice) {
  Terminal terminal;
  terminal.is_terminal = isatty(descriptor) == 1;
  terminal.can_redraw = terminal.is_terminal && environment("TERM") != "dumb";
  terminal.color = wants_color(terminal.is_terminal, choice);
  terminal.unicode = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  winsize size{};
  if (terminal.is_terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col > 0) terminal.width = size.ws_col;
    if (size.ws_row > 0) terminal.height = size.ws_row;
  }
  return terminal;
}

}  // namespace tool
