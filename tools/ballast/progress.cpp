// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "signals.h"
#include "text.h"

namespace tool {
namespace {

constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr double kSecondsBetweenLines = 5;
constexpr std::size_t kWidestBar = 40;
constexpr std::size_t kNarrowestBar = 8;

std::string bar_of(double share, std::size_t width, bool unicode) {
  const auto full = std::min(width, static_cast<std::size_t>(share * static_cast<double>(width)));
  std::string bar;
  for (std::size_t i = 0; i < full; ++i) bar += unicode ? "━" : "=";
  if (!unicode && full < width) bar += '>';
  for (std::size_t i = full + (unicode ? 0 : 1); i < width; ++i) bar += unicode ? "╌" : " ";
  return unicode ? bar : '[' + bar + ']';
}

double share_of(std::uint64_t done, std::uint64_t total) {
  return total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
}

// Between two lines of a log; BALLAST_PROGRESS has other seconds.
std::chrono::steady_clock::duration between_lines() {
  double seconds = kSecondsBetweenLines;
  if (const char* const said = std::getenv("BALLAST_PROGRESS")) {
    const std::string_view word = said;
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc() && end == word.data() + word.size() && number >= 0 && number < 1e6)
      seconds = number;
  }
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

void write_stderr(std::string_view text) {
  const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(ignored);
}

}  // namespace

std::string progress_figures(std::uint64_t done, std::uint64_t total, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text =
      fmt::format("{:3.0f} %  {} / {}", share_of(done, total) * 100, human_bytes(done), human_bytes(total));
  if (rate > 0) {
    text += fmt::format("  {}/s", human_bytes(static_cast<std::uint64_t>(rate)));
    text += fmt::format(
        "  {} left", human_seconds(std::max(1.0, static_cast<double>(total - std::min(done, total)) / rate)));
  }
  return text;
}

std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total, double seconds,
                          bool unicode, int width) {
  const std::string right = progress_figures(done, total, seconds);
  const std::size_t room =
      width > 1 ? static_cast<std::size_t>(width) - 1 : 0;  // the last column would wrap on some terminals
  const std::size_t taken = screen_width(label) + right.size() + 6;
  if (room < taken + kNarrowestBar) return right.substr(0, room);
  return fmt::format("{}  {}  {}", label,
                     bar_of(share_of(done, total), std::min(kWidestBar, room - taken), unicode), right);
}

ProgressBar::ProgressBar(const Terminal& terminal, bool wanted, std::string label)
    : terminal_(terminal),
      enabled_(wanted),
      between_(terminal.can_redraw ? kBetweenDrawings : between_lines()),
      label_(std::move(label)) {}

ProgressBar::~ProgressBar() {
  if (shown_) write_stderr("\r\x1b[K");
  progress_line_shown(false);
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  if (!enabled_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // somebody is drawing right now
  const auto now = Clock::now();
  if (now - drawn_ < between_) return;  // short work shows nothing at all
  drawn_ = now;
  if (!terminal_.can_redraw) {
    const double seconds = std::chrono::duration<double>(now - start_).count();
    write_stderr(fmt::format("{}: {}\n", label_, progress_figures(done, total, seconds)));
    return;
  }
  shown_ = true;
  progress_line_shown(true);
  draw(done, total, std::chrono::duration<double>(now - start_).count());
}

void ProgressBar::draw(std::uint64_t done, std::uint64_t total, double seconds) const {
  const std::string line = progress_line(label_, done, total, seconds, terminal_.unicode, terminal_.width);
  write_stderr("\r" + terminal_.paint(line, Style::cyan) + "\x1b[K");
}

ballast::Progress ProgressBar::callback() {
  if (!enabled_) return {};
  return [this](std::uint64_t done, std::uint64_t total) { update(done, total); };
}

}  // namespace tool
