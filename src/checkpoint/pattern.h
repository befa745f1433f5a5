// SPDX-License-Identifier: Apache-2.0
// Patterns and replacements: the only place that sees RE2.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace ballast {

/// What may be made of names by one rule. A short template makes a long name of a long one, and there may be
/// many of both.
class NameRoom {
 public:
  NameRoom(std::uint64_t names, std::uint64_t bytes) : names_(names), bytes_(bytes) {}
  /// Errc::too_many, before the text is made.
  void take(std::uint64_t names, std::uint64_t bytes);

 private:
  std::uint64_t names_;
  std::uint64_t bytes_;
};

class Pattern {
 public:
  static constexpr std::int64_t kUsualMemory = std::int64_t{1} << 20U;

  /// Errc::invalid_argument with RE2's reason. `memory`: what the pattern and what it has seen may take.
  explicit Pattern(const std::string& text, std::int64_t memory = kUsualMemory);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  [[nodiscard]] bool matches(std::string_view key) const;
  /// What a byte of a name costs at most, by the size of the pattern: 1 for words.
  [[nodiscard]] std::uint64_t weight() const;

  /// "$1.x" cut into text and group numbers, checked against the groups the pattern has.
  class Replacement {
   public:
    struct Part {
      std::string text;
      int group = -1;  // -1: text
    };

    std::vector<Part> parts;
  };

  [[nodiscard]] Replacement replacement(std::string_view text) const;

  /// Every match replaced; nullopt when there is none.
  [[nodiscard]] std::optional<std::string> replace_all(std::string_view key, const Replacement& by,
                                                       NameRoom* room = nullptr) const;
  /// The first match replaced, once for each of `by`; empty when there is none.
  [[nodiscard]] std::vector<std::string> replace_first(std::string_view key,
                                                       const std::vector<Replacement>& by,
                                                       NameRoom* room = nullptr) const;

 private:
  std::string text_;
  std::unique_ptr<re2::RE2> regex_;
};

/// Patterns that are kept together, in memory that does not grow with their number. Errc::too_many.
[[nodiscard]] std::vector<Pattern> kept_patterns(const std::vector<std::string>& texts);

/// What patterns of a stranger's (of a receipt, of rules) look through: each of them all names.
class PatternWork {
 public:
  /// Errc::expansion_limit when this pattern on so many bytes of names is too much, after those before it.
  void add(const Pattern& pattern, std::uint64_t bytes);

 private:
  std::uint64_t done_ = 0;
};

/// Those of `patterns` that match none of `names`.
[[nodiscard]] std::vector<std::string> unmatched(const std::vector<std::string>& patterns,
                                                 const std::vector<std::string_view>& names);

/// Which keys are wanted.
class KeyFilter {
 public:
  KeyFilter(const std::vector<std::string>& include, const std::vector<std::string>& exclude);
  [[nodiscard]] bool passes(std::string_view key) const;

 private:
  std::vector<Pattern> include_;
  std::vector<Pattern> exclude_;
};

}  // namespace ballast
