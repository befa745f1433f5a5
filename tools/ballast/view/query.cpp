// SPDX-License-Identifier: Apache-2.0
#include "view/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ballast/error.h"
#include "view/response.h"

namespace tool::view {
namespace {

constexpr std::int64_t kMostRows = 5000;

[[noreturn]] void refuse_query(std::string message) {
  throw Refused{400, "invalid-argument", std::move(message)};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::int64_t whole_number(std::string_view name, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    refuse_query(fmt::format("{} is {}, which is no number", name, ballast::quoted(text)));
  return value;
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) refuse_query("a percent sign without two hexadecimal digits");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

Query::Query(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    pairs_.emplace_back(percent_decoded(pair.substr(0, equals)),
                        percent_decoded(pair.substr(std::min(equals + 1, pair.size()))));
  }
}

const std::string* Query::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(pairs_.begin(), pairs_.end(), [&](const auto& pair) { return pair.first == name; });
  return found == pairs_.end() ? nullptr : &found->second;
}

std::string Query::text(std::string_view name, std::string_view otherwise) const {
  const std::string* found = find(name);
  return found == nullptr ? std::string(otherwise) : *found;
}

std::int64_t Query::number(std::string_view name, std::int64_t otherwise, std::int64_t low,
                           std::int64_t high) const {
  const std::string* found = find(name);
  const std::int64_t value = found == nullptr ? otherwise : whole_number(name, *found);
  if (value < low || value > high)
    refuse_query(fmt::format("{} is {}, and must lie from {} to {}", name, value, low, high));
  return value;
}

bool Query::flag(std::string_view name, bool otherwise) const {
  return number(name, otherwise ? 1 : 0, 0, 1) == 1;
}

std::vector<std::int64_t> Query::numbers(std::string_view name) const {
  std::vector<std::int64_t> values;
  const std::string* found = find(name);
  if (found == nullptr || found->empty()) return values;
  std::string_view left = *found;
  while (true) {
    const std::size_t comma = left.find(',');
    values.push_back(whole_number(name, left.substr(0, comma)));
    if (comma == std::string_view::npos) return values;
    left.remove_prefix(comma + 1);
  }
}

std::string Query::one_of(std::string_view name, const std::vector<std::string_view>& words) const {
  std::string word = text(name, words.front());
  if (std::find(words.begin(), words.end(), word) == words.end())
    refuse_query(
        fmt::format("{} is {}, and must be one of {}", name, ballast::quoted(word), fmt::join(words, ", ")));
  return word;
}

Page page_of_query(const Query& query) {
  return {.offset = static_cast<std::size_t>(query.number("offset", 0, 0, INT64_MAX)),
          .limit = static_cast<std::size_t>(query.number("limit", 200, 0, kMostRows))};
}

}  // namespace tool::view
