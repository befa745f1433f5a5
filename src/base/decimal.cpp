// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/ascii.h"

namespace ballast {
namespace {

// Of a number with digits that are not all zero: whether it is smaller than 1. One that no double holds is
// then smaller than all of them, else larger. from_chars() does not say which.
bool is_below_one(std::string_view text) noexcept {
  const std::size_t end = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, end);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = std::min(digits.find_first_of("123456789"), digits.size());
  const auto place =
      static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);  // "5": 1, "0.5": -1
  std::string_view exponent = text.substr(std::min(end + 1, text.size()));
  const bool is_negative = exponent.starts_with('-');
  if (is_negative || exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t power = 0;
  constexpr std::int64_t kFar = std::int64_t{1} << 60U;
  for (const char c : exponent) power = std::min(power * 10 + (c - '0'), kFar / 10);
  return place + (is_negative ? -power : power) < 0;
}

}  // namespace

std::optional<double> double_of(std::string_view text) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc()) return value;
  if (!is_below_one(text)) return std::nullopt;
  return text.starts_with('-') ? -0.0 : 0.0;
}

}  // namespace ballast
