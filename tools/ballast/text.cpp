// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <vector>

#include "ballast/error.h"

namespace tool {
namespace {

// Three significant digits, never in scientific notation, and never "1000" where the next unit begins.
std::string scaled(double value, double base, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= base * 0.9995) {
    value /= base;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const std::string number = fmt::format("{:.{}f}", value, decimals);
  return units[unit].empty() ? number : fmt::format("{} {}", number, units[unit]);
}

bool is_wide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

bool is_combining(char32_t c) {
  return (c >= 0x0300 && c <= 0x036F) || (c >= 0x1AB0 && c <= 0x1AFF) || (c >= 0x20D0 && c <= 0x20FF) ||
         (c >= 0xFE00 && c <= 0xFE0F) || (c >= 0xFE20 && c <= 0xFE2F);
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return scaled(static_cast<double>(bytes), 1024, kUnits);
}

std::string human_count(std::uint64_t count) {
  static constexpr std::array<std::string_view, 5> kUnits = {"", "K", "M", "B", "T"};
  return scaled(static_cast<double>(count), 1000, kUnits);
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

std::string human_seconds(double seconds) {
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string index_text(std::uint64_t place, std::span<const std::int64_t> shape, std::uint64_t count) {
  std::uint64_t elements = 1;
  for (const std::int64_t dim : shape) elements *= static_cast<std::uint64_t>(dim);
  if (elements > 0 && count > elements) place /= count / elements;
  std::vector<std::uint64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    const auto dim = static_cast<std::uint64_t>(shape[i]);
    if (dim == 0) break;
    index[i] = place % dim;
    place /= dim;
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::size_t screen_width(std::string_view text) {
  std::size_t width = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++width;
      ++at;
      continue;
    }
    const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    char32_t point = lead & (0x7FU >> size);
    for (std::size_t i = 1; i < size && at + i < text.size(); ++i) {
      point = point << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
    }
    width += is_combining(point) ? 0 : is_wide(point) ? 2 : 1;
    at += size;
  }
  return width;
}

std::string_view nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string_view> names(candidates.begin(), candidates.end());
  const auto found = ballast::nearest(word, names, 1);
  return found.empty() ? std::string_view() : found.front();
}

}  // namespace tool
