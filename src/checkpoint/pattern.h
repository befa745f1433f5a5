// SPDX-License-Identifier: Apache-2.0
// Patterns and replacements: the only place that sees RE2.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// What a byte of a name costs where the states of the pattern may not fit into the matcher's memory, and
  /// each of them is looked at: 0 for patterns with few choices, which always fit.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// Instructions that were made of it: what making it costs.
  [[nodiscard]] std::uint64_t instructions() const noexcept;

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
  struct Matcher;

  bool search(std::string_view key, std::size_t from, std::vector<std::string_view>& groups) const;
  void spend(std::size_t bytes) const;

  std::string text_;
  std::unique_ptr<Matcher> matcher_;
  std::uint64_t steps_ = 0;
};

/// Patterns that are kept together, in memory that does not grow with their number. Errc::too_many.
[[nodiscard]] std::vector<Pattern> kept_patterns(const std::vector<std::string>& texts);

struct NamesSize {
  std::uint64_t names = 0;
  std::uint64_t bytes = 0;
};

/// What patterns of a stranger's (of a receipt, of rules) cost together: making each, and looking through
/// names with it. Several threads may share it.
class PatternWork {
 public:
  /// The names there are: the more, the more patterns may look through them.
  void show(NamesSize all);
  /// One more of them.
  void show_another(std::string_view name);
  /// Errc::expansion_limit when this pattern was too much to make, after those before it.
  void make(const Pattern& pattern);
  /// Errc::expansion_limit when looking through these names with it is too much, after all before.
  void look(const Pattern& pattern, NamesSize through);

 private:
  void check(const Pattern& pattern) const;

  std::atomic<std::uint64_t> shown_{0};  // bytes, and those that a name costs beside its own
  std::atomic<std::uint64_t> looked_at_{0};
  std::atomic<std::uint64_t> steps_{0};
};

/// What patterns find, each of them in one pass over the names.
struct Found {
  std::vector<bool> names;             // matched by any
  std::vector<std::string> unmatched;  // patterns that matched none
};

[[nodiscard]] Found found(const std::vector<std::string>& patterns,
                          const std::vector<std::string_view>& names, PatternWork& work);

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
  std::unique_ptr<PatternWork> work_ = std::make_unique<PatternWork>();
};

}  // namespace ballast
