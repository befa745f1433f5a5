// SPDX-License-Identifier: Apache-2.0
// What stands behind '?' in a request, decoded, and read as what an endpoint wants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tool::view {

class Query {
 public:
  Query() = default;
  /// Refused (400) when it is not well-formed.
  explicit Query(std::string_view text);

  [[nodiscard]] bool has(std::string_view name) const noexcept { return find(name) != nullptr; }

  [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise = {}) const;
  /// Refused (400) when it is no number, or not from `low` to `high`.
  [[nodiscard]] std::int64_t number(std::string_view name, std::int64_t otherwise, std::int64_t low,
                                    std::int64_t high) const;
  [[nodiscard]] bool flag(std::string_view name, bool otherwise) const;
  /// "0,1"; empty when it is not there.
  [[nodiscard]] std::vector<std::int64_t> numbers(std::string_view name) const;
  /// One of `words`, the first when it is not there.
  [[nodiscard]] std::string one_of(std::string_view name, const std::vector<std::string_view>& words) const;

 private:
  [[nodiscard]] const std::string* find(std::string_view name) const noexcept;

  std::vector<std::pair<std::string, std::string>> pairs_;
};

/// A part of a list: ?offset=&limit=.
struct Page {
  std::size_t offset;
  std::size_t limit;
};

[[nodiscard]] Page page_of_query(const Query& query);

/// "%41" → "A", '+' → ' '. Refused (400) when it is not well-formed.
[[nodiscard]] std::string percent_decoded(std::string_view text);

}  // namespace tool::view
