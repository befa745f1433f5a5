// SPDX-License-Identifier: Apache-2.0
#include "model/suggest.h"

#include <algorithm>
#include <map>
#include <set>

#include "ballast/error.h"
#include "base/key_path.h"
#include "checkpoint/pattern.h"

namespace ballast {
namespace {

constexpr std::size_t kMostRules = 12;
constexpr std::size_t kMostKeys = 5'000;  // beyond, a guess costs more than it is worth

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(R"(\.+*?()|[]{}^$)").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// `text` as a replacement that means nothing but itself.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '$' ? std::string("$$") : std::string(1, c);
  return out;
}

std::string joined(const std::vector<std::string_view>& segments, std::size_t begin, std::size_t end) {
  std::string out;
  for (std::size_t i = begin; i < end; ++i) out += (i > begin ? "." : "") + std::string(segments[i]);
  return out;
}

// What must be replaced in `from` to get `to`, with as much context left out as the two have in common at
// both ends.
RenameRule rule_between(std::string_view from, std::string_view to) {
  const auto a = key_path::segments(from);
  const auto b = key_path::segments(to);
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t tail = 0;
  while (tail < shorter && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  if (tail == 0) return {"^" + escaped(from) + "$", literal(to)};  // not even the last name: this key only
  if (tail == a.size()) return {"^" + escaped(from) + "$", literal(to)};
  std::size_t head = 0;
  while (head + tail < shorter && a[head] == b[head]) ++head;
  if (head > 0 && head + tail == a.size()) --head;  // an insertion needs something to hold on to
  const std::string old_part = joined(a, head, a.size() - tail);
  const std::string new_part = literal(joined(b, head, b.size() - tail));
  const std::string open = head == 0 ? "^" : R"(\.)";
  const std::string dot = head == 0 ? "" : ".";
  return {open + escaped(old_part) + R"(\.)", dot + new_part + (new_part.empty() ? "" : ".")};
}

using Pairs = std::vector<std::pair<std::string, std::string>>;  // unused → missing

// Tensors with one last name and one shape, taken in order when there are as many of them on both sides, else
// by the nearest name.
Pairs pair_up(const std::vector<NamedShape>& missing, const std::vector<NamedShape>& unused) {
  using Group = std::pair<std::string, std::vector<std::int64_t>>;
  std::map<Group, std::vector<std::string>> groups;
  for (const NamedShape& key : unused)
    groups[{std::string(key_path::last(key.key)), key.shape}].push_back(key.key);
  std::map<Group, std::vector<std::string>> wanted;
  for (const NamedShape& key : missing) {
    if (!key.any_shape) wanted[{std::string(key_path::last(key.key)), key.shape}].push_back(key.key);
  }
  Pairs pairs;
  for (const auto& [group, keys] : wanted) {
    const auto found = groups.find(group);
    if (found == groups.end()) continue;
    std::vector<std::string>& offers = found->second;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (offers.size() == keys.size()) {
        pairs.emplace_back(offers[i], keys[i]);
        continue;
      }
      const std::vector<std::string_view> views(offers.begin(), offers.end());
      if (const auto near = nearest(keys[i], views, 1); !near.empty())
        pairs.emplace_back(std::string(near[0]), keys[i]);
      else if (offers.size() == 1)
        pairs.emplace_back(offers[0], keys[i]);
    }
  }
  return pairs;
}

// The same rule for keys with `prefix` before them, which stays there.
RenameRule behind(std::string_view prefix, const std::string& match, const std::string& to) {
  if (prefix.empty() || !match.starts_with('^')) return {match, to};
  return {"^" + escaped(prefix) + match.substr(1), literal(prefix) + to};
}

}  // namespace

std::vector<RenameRule> suggest_renames(const std::vector<NamedShape>& missing,
                                        const std::vector<NamedShape>& unused, std::string_view stripped) {
  if (missing.empty() || unused.empty() || missing.size() > kMostKeys || unused.size() > kMostKeys) return {};
  const Pairs pairs = pair_up(missing, unused);
  std::map<std::pair<std::string, std::string>, std::size_t> votes;
  for (const auto& [from, to] : pairs) {
    const RenameRule rule = rule_between(from, to);
    ++votes[{rule.match, rule.to}];
  }
  std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> ranked(votes.begin(), votes.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::set<std::string> open;
  for (const NamedShape& key : missing) open.insert(key.key);
  std::vector<std::string>
      names;  // of the unused, after the rules so far: each works on what the last one left
  for (const NamedShape& key : unused) names.push_back(key.key);
  std::vector<RenameRule> rules;
  for (const auto& [rule, count] : ranked) {
    if (rules.size() == kMostRules) break;
    const Pattern pattern(rule.first);
    const auto by = pattern.replacement(rule.second);
    bool helps = false;
    std::vector<std::string> after = names;
    for (std::string& name : after) {
      if (const auto renamed = pattern.replace_all(name, by)) {
        name = *renamed;
        helps = open.erase(name) > 0 || helps;
      }
    }
    if (!helps) continue;
    names = std::move(after);
    rules.push_back(behind(stripped, rule.first, rule.second));
  }
  return rules;
}

}  // namespace ballast
