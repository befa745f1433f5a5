// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>

#include "ballast/error.h"
#include "base/fail.h"
#include "base/utf8.h"

namespace ballast {
namespace {

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

std::string_view view(const re2::StringPiece& text) {
  return {text.data(), text.size()};
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void append_expanded(std::string& out, const Pattern::Replacement& by,
                     const std::vector<re2::StringPiece>& groups, NameRoom* room) {
  for (const auto& part : by.parts) {
    const std::string_view text =
        part.group < 0 ? std::string_view(part.text) : view(groups[static_cast<std::size_t>(part.group)]);
    if (room != nullptr) room->take(0, text.size());
    out += text;
  }
}

}  // namespace

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
  regex_ = std::make_unique<re2::RE2>(piece(text), options);
  if (!regex_->ok())
    fail(Errc::invalid_argument, "pattern " + quoted(text), "is not a regular expression: {}",
         display(regex_->error()));
  // The matcher's memory is groups times states.
  constexpr int kMostGroups = 100;
  if (regex_->NumberOfCapturingGroups() > kMostGroups)
    fail(Errc::too_many, "pattern " + quoted(text), "has {} groups, at most {} are taken",
         regex_->NumberOfCapturingGroups(), kMostGroups);
}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

bool Pattern::matches(std::string_view key) const {
  return re2::RE2::PartialMatch(piece(key), *regex_);
}

std::uint64_t Pattern::weight() const {
  constexpr int kOfWords = 16;
  return 1 + static_cast<std::uint64_t>(std::max(0, regex_->ProgramSize()) / kOfWords);
}

Pattern::Replacement Pattern::replacement(std::string_view text) const {
  Replacement result;
  std::string literal;
  const auto group = [&](std::string_view name) {
    int number = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size()) {
      const auto& named = regex_->NamedCapturingGroups();
      const auto found = named.find(std::string(name));
      number = found == named.end() ? -1 : found->second;
    }
    if (number < 0 || number > regex_->NumberOfCapturingGroups()) {
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
  std::vector<re2::StringPiece> groups(static_cast<std::size_t>(regex_->NumberOfCapturingGroups()) + 1);
  std::string out;
  std::size_t position = 0;
  std::size_t copied = 0;
  bool found = false;
  while (position <= key.size() && regex_->Match(piece(key), position, key.size(), re2::RE2::UNANCHORED,
                                                 groups.data(), static_cast<int>(groups.size()))) {
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
  std::vector<re2::StringPiece> groups(static_cast<std::size_t>(regex_->NumberOfCapturingGroups()) + 1);
  if (!regex_->Match(piece(key), 0, key.size(), re2::RE2::UNANCHORED, groups.data(),
                     static_cast<int>(groups.size())))
    return {};
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

std::vector<Pattern> kept_patterns(const std::vector<std::string>& texts) {
  constexpr std::size_t kMost = 4096;
  constexpr std::int64_t kTogether = std::int64_t{32} << 20U;
  constexpr std::int64_t kLeast = std::int64_t{16} << 10U;
  if (texts.size() > kMost)
    fail(Errc::too_many, "patterns", "{} patterns, at most {} are taken; one may stand for several (a|b)",
         texts.size(), kMost);
  const std::int64_t each = kTogether / std::max<std::int64_t>(1, static_cast<std::int64_t>(texts.size()));
  std::vector<Pattern> patterns;
  for (const std::string& text : texts)
    patterns.emplace_back(text, std::clamp(each, kLeast, Pattern::kUsualMemory));
  return patterns;
}

void PatternWork::add(const Pattern& pattern, std::uint64_t bytes) {
  constexpr std::uint64_t kAlways = std::uint64_t{1} << 29U;
  constexpr std::uint64_t kForEachByte = 256;
  done_ += bytes * pattern.weight();
  if (done_ > kAlways + kForEachByte * bytes)
    fail(Errc::expansion_limit, "pattern " + quoted(pattern.text()),
         "with the patterns before it, it looks through {} bytes of names too often", bytes);
}

std::vector<std::string> unmatched(const std::vector<std::string>& patterns,
                                   const std::vector<std::string_view>& names) {
  std::vector<std::string> found;
  std::uint64_t bytes = 0;
  for (const std::string_view name : names) bytes += name.size();
  PatternWork work;
  for (const std::string& text : patterns) {
    const Pattern pattern(text);
    work.add(pattern, bytes);
    if (std::none_of(names.begin(), names.end(),
                     [&](std::string_view name) { return pattern.matches(name); }))
      found.push_back(text);
  }
  return found;
}

KeyFilter::KeyFilter(const std::vector<std::string>& include, const std::vector<std::string>& exclude)
    : include_(kept_patterns(include)), exclude_(kept_patterns(exclude)) {}

bool KeyFilter::passes(std::string_view key) const {
  const auto matches = [key](const Pattern& pattern) { return pattern.matches(key); };
  if (!include_.empty() && std::none_of(include_.begin(), include_.end(), matches)) return false;
  return std::none_of(exclude_.begin(), exclude_.end(), matches);
}

}  // namespace ballast
