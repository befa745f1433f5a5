// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <atomic>
#include <charconv>

#include "ballast/error.h"
#include "base/fail.h"
#include "base/utf8.h"

namespace ballast {
namespace {

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void append_expanded(std::string& out, const Pattern::Replacement& by,
                     const std::vector<std::string_view>& groups, NameRoom* room) {
  for (const auto& part : by.parts) {
    const std::string_view text =
        part.group < 0 ? std::string_view(part.text) : groups[static_cast<std::size_t>(part.group)];
    if (room != nullptr) room->take(0, text.size());
    out += text;
  }
}

// How many places of the text may stand for several letters: classes, choices and repetitions, each as often
// as it is written and, to be safe, all of them as often as any is repeated by number.
class Choices {
 public:
  explicit Choices(std::string_view pattern) : rest_(pattern) {
    while (!rest_.empty()) take();
    choices_ += open_.front() ? 1U : 0U;
  }

  /// The matcher has few states for each letter: at most one for each set of the places.
  [[nodiscard]] bool are_few() const { return choices_ * times_ <= 8; }

 private:
  void take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    bool is_choice = false;
    if (c == '\\' && !rest_.empty()) {
      is_choice = is_word(rest_.front());  // \d, \pL
      rest_.remove_prefix(1);
    } else if (c == '[') {
      rest_.remove_prefix(std::min(rest_.size(), rest_.find(']', rest_.starts_with('^') ? 2 : 1)));
      is_choice = true;
    } else if (c == '(') {
      open_.push_back(false);
      if (rest_.starts_with('?')) rest_.remove_prefix(1);
    } else if (c == ')' && open_.size() > 1) {
      is_choice = open_.back();
      open_.pop_back();
    } else if (c == '|') {
      open_.back() = true;
    } else if (c == '{') {
      repeat();
    } else if (c == '*' || c == '+' || c == '?') {
      choices_ += was_choice_ ? 0U : 1U;  // .* is one place
      was_choice_ = true;
      return;
    } else {
      is_choice = c == '.';
    }
    choices_ += is_choice ? 1U : 0U;
    was_choice_ = is_choice;
  }

  // {3}, {3,} or {3,9}: RE2 takes up to 1000.
  void repeat() {
    std::uint64_t most = 1;
    for (std::uint64_t number = 0; !rest_.empty() && rest_.front() != '}'; rest_.remove_prefix(1)) {
      const char c = rest_.front();
      number = c >= '0' && c <= '9'
                   ? std::min<std::uint64_t>(1000, number * 10 + static_cast<unsigned>(c - '0'))
                   : 0;
      most = std::max(most, number);
    }
    times_ = std::min<std::uint64_t>(std::uint64_t{1} << 20U, times_ * most);
  }

  std::string_view rest_;
  std::vector<bool> open_{false};  // of each open bracket: whether there is a | in it
  bool was_choice_ = false;
  std::uint64_t choices_ = 0;
  std::uint64_t times_ = 1;
};

// What patterns may cost whose every state is looked at for each byte: a step is some 3 ns.
bool is_too_much(std::uint64_t steps, std::uint64_t bytes) {
  constexpr std::uint64_t kAlways = std::uint64_t{1} << 28U;
  constexpr std::uint64_t kForEachByte = 64;
  return steps > kAlways + kForEachByte * bytes;
}

}  // namespace

struct Pattern::Matcher {
  Matcher(const std::string& text, const re2::RE2::Options& options) : regex(piece(text), options) {}

  re2::RE2 regex;
  // What has been looked through: several threads may share a pattern.
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint64_t> bytes{0};
};

void NameRoom::take(std::uint64_t names, std::uint64_t bytes) {
  if (names > names_ || bytes > bytes_)
    fail(Errc::too_many, "names", "more of them, or longer ones, are made by one rule than are taken");
  names_ -= names;
  bytes_ -= bytes;
}

Pattern::Pattern(const std::string& text, std::int64_t memory) : text_(text) {
  re2::RE2::Options options;
  options.set_max_mem(memory);
  options.set_log_errors(false);
  matcher_ = std::make_unique<Matcher>(text, options);
  const re2::RE2& regex = matcher_->regex;
  if (!regex.ok())
    fail(Errc::invalid_argument, "pattern " + quoted(text), "is not a regular expression: {}",
         display(regex.error()));
  // The matcher's memory is groups times states.
  constexpr int kMostGroups = 100;
  if (regex.NumberOfCapturingGroups() > kMostGroups)
    fail(Errc::too_many, "pattern " + quoted(text), "has {} groups, at most {} are taken",
         regex.NumberOfCapturingGroups(), kMostGroups);
  if (!Choices(text).are_few()) steps_ = static_cast<std::uint64_t>(std::max(1, regex.ProgramSize()));
}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

std::uint64_t Pattern::instructions() const noexcept {
  return static_cast<std::uint64_t>(std::max(1, matcher_->regex.ProgramSize()));
}

void Pattern::spend(std::size_t bytes) const {
  if (steps_ == 0) return;
  if (is_too_much(matcher_->steps += steps_ * bytes, matcher_->bytes += bytes))
    fail(Errc::expansion_limit, "pattern " + quoted(text_),
         "is too large for the names it looks through: {} steps for each of their bytes", steps_);
}

bool Pattern::search(std::string_view key, std::size_t from, std::vector<std::string_view>& groups) const {
  spend(key.size() - from);
  std::vector<re2::StringPiece> found(static_cast<std::size_t>(matcher_->regex.NumberOfCapturingGroups()) +
                                      1);
  if (!matcher_->regex.Match(piece(key), from, key.size(), re2::RE2::UNANCHORED, found.data(),
                             static_cast<int>(found.size())))
    return false;
  groups.clear();
  for (const re2::StringPiece& group : found) groups.emplace_back(group.data(), group.size());
  return true;
}

bool Pattern::matches(std::string_view key) const {
  spend(key.size());
  return re2::RE2::PartialMatch(piece(key), matcher_->regex);
}

Pattern::Replacement Pattern::replacement(std::string_view text) const {
  Replacement result;
  std::string literal;
  const auto group = [&](std::string_view name) {
    int number = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size()) {
      const auto& named = matcher_->regex.NamedCapturingGroups();
      const auto found = named.find(std::string(name));
      number = found == named.end() ? -1 : found->second;
    }
    if (number < 0 || number > matcher_->regex.NumberOfCapturingGroups()) {
      fail(Errc::invalid_argument, "replacement " + quoted(text), "names group {}, which {} does not have",
           quoted(name), quoted(text_));
    }
    if (!literal.empty()) result.parts.push_back({std::exchange(literal, {}), -1});
    result.parts.push_back({{}, number});
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      literal += text[i];
      continue;
    }
    const std::string_view rest = text.substr(i + 1);
    if (rest.starts_with('$')) {
      literal += '$';
      ++i;
      continue;
    }
    if (rest.starts_with('{') && rest.find('}') != rest.npos) {
      const std::string_view name = rest.substr(1, rest.find('}') - 1);
      group(name);
      i += name.size() + 2;
      continue;
    }
    // $1x is group 1 and an x; $name takes all of a word.
    const bool number = !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
    const auto last = std::find_if(rest.begin(), rest.end(),
                                   [&](char c) { return number ? c < '0' || c > '9' : !is_word(c); });
    const std::string_view name = rest.substr(0, static_cast<std::size_t>(last - rest.begin()));
    if (name.empty())
      fail(Errc::invalid_argument, "replacement " + quoted(text),
           "has a $ that names no group (write $$ for the sign itself)");
    group(name);
    i += name.size();
  }
  if (!literal.empty()) result.parts.push_back({literal, -1});
  return result;
}

std::optional<std::string> Pattern::replace_all(std::string_view key, const Replacement& by,
                                                NameRoom* room) const {
  std::vector<std::string_view> groups;
  std::string out;
  std::size_t position = 0;
  std::size_t copied = 0;
  bool found = false;
  while (position <= key.size() && search(key, position, groups)) {
    const auto begin = static_cast<std::size_t>(groups[0].data() - key.data());
    const std::size_t end = begin + groups[0].size();
    // An empty match right behind the last one is that one's end, not a match of its own.
    if (begin != end || !found || begin != copied) {
      out += key.substr(copied, begin - copied);
      append_expanded(out, by, groups, room);
      copied = end;
      found = true;
    }
    if (begin != end) {
      position = end;
      continue;
    }
    if (end == key.size()) break;
    position = end + std::max<std::size_t>(1, decode_utf8(key.substr(end)).size);
  }
  if (!found) return std::nullopt;
  out += key.substr(copied);
  return out;
}

std::vector<std::string> Pattern::replace_first(std::string_view key, const std::vector<Replacement>& by,
                                                NameRoom* room) const {
  std::vector<std::string_view> groups;
  if (!search(key, 0, groups)) return {};
  const auto begin = static_cast<std::size_t>(groups[0].data() - key.data());
  std::vector<std::string> results;
  for (const Replacement& replacement : by) {
    if (room != nullptr) room->take(1, key.size() - groups[0].size());
    std::string out(key.substr(0, begin));
    append_expanded(out, replacement, groups, room);
    out += key.substr(begin + groups[0].size());
    results.push_back(std::move(out));
  }
  return results;
}

namespace {

void require_few(const std::vector<std::string>& texts) {
  constexpr std::size_t kMost = 4096;
  if (texts.size() > kMost)
    fail(Errc::too_many, "patterns", "{} patterns, at most {} are taken; one may stand for several (a|b)",
         texts.size(), kMost);
}

}  // namespace

std::vector<Pattern> kept_patterns(const std::vector<std::string>& texts) {
  require_few(texts);
  constexpr std::int64_t kTogether = std::int64_t{32} << 20U;
  constexpr std::int64_t kLeast = std::int64_t{16} << 10U;
  const std::int64_t each = kTogether / std::max<std::int64_t>(1, static_cast<std::int64_t>(texts.size()));
  std::vector<Pattern> patterns;
  for (const std::string& text : texts)
    patterns.emplace_back(text, std::clamp(each, kLeast, Pattern::kUsualMemory));
  return patterns;
}

namespace {

// Of a look at a name, beside its bytes; and of an instruction that is made.
constexpr std::uint64_t kForEachLook = 64;
constexpr std::uint64_t kForEachInstruction = 256;

std::uint64_t cost_of(NamesSize names) {
  return names.bytes + kForEachLook * names.names;
}

}  // namespace

void PatternWork::show(NamesSize all) {
  shown_ = std::max<std::uint64_t>(shown_, cost_of(all));
}

void PatternWork::show_another(std::string_view name) {
  shown_ += cost_of({.names = 1, .bytes = name.size()});
}

void PatternWork::make(const Pattern& pattern) {
  looked_at_ += kForEachInstruction * pattern.instructions();
  check(pattern);
}

void PatternWork::look(const Pattern& pattern, NamesSize through) {
  looked_at_ += cost_of(through);
  steps_ += through.bytes * pattern.steps();
  check(pattern);
}

void PatternWork::check(const Pattern& pattern) const {
  constexpr std::uint64_t kAlways = std::uint64_t{1} << 28U;
  constexpr std::uint64_t kForEachByte = 512;
  if (looked_at_ <= kAlways + kForEachByte * shown_ && !is_too_much(steps_, shown_)) return;
  fail(Errc::expansion_limit, "pattern " + quoted(pattern.text().substr(0, 200)),
       "with the patterns before it, it is too much work for so few names");
}

Found found(const std::vector<std::string>& patterns, const std::vector<std::string_view>& names,
            PatternWork& work) {
  require_few(patterns);
  Found result;
  result.names.resize(names.size());
  NamesSize all{.names = names.size(), .bytes = 0};
  for (const std::string_view name : names) all.bytes += name.size();
  work.show(all);
  for (const std::string& text : patterns) {
    const Pattern pattern(text);
    work.make(pattern);
    work.look(pattern, all);
    bool matched = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if ((matched && result.names[i]) || !pattern.matches(names[i])) continue;
      result.names[i] = true;
      matched = true;
    }
    if (!matched) result.unmatched.push_back(text);
  }
  return result;
}

std::vector<std::string> unmatched(const std::vector<std::string>& patterns,
                                   const std::vector<std::string_view>& names) {
  PatternWork work;
  return found(patterns, names, work).unmatched;
}

KeyFilter::KeyFilter(const std::vector<std::string>& include, const std::vector<std::string>& exclude)
    : include_(kept_patterns(include)), exclude_(kept_patterns(exclude)) {}

bool KeyFilter::passes(std::string_view key) const {
  const NamesSize one{.names = 1, .bytes = key.size()};
  work_->show_another(key);
  const auto matches = [&](const Pattern& pattern) {
    work_->look(pattern, one);
    return pattern.matches(key);
  };
  if (!include_.empty() && std::none_of(include_.begin(), include_.end(), matches)) return false;
  return std::none_of(exclude_.begin(), exclude_.end(), matches);
}

}  // namespace ballast
