// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pattern.h"

#include <gtest/gtest.h>

#include "ballast/error.h"
#include "ballast/steps.h"
#include "base/error_of.h"
#include "base/fail.h"

namespace ballast {
namespace {

// Patterns whose states do not fit into the matcher's memory: every byte of a name costs a step for each.
const std::vector<std::string> kCostly{"((a?){30}){30}b", "(?i)(a[^b]{1,60}){1,16}z$", "(?:.{40}){12}b",
                                       "a(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)",
                                       "a[ab][ab][ab][ab][ab][ab][ab][ab][ab]"};

void make_and_look(PatternWork& work, const Pattern& pattern, NamesSize names) {
  work.show(names);
  work.make(pattern);
  work.look(pattern, names);
}

TEST(PatternWork, TakesHundredsOfSmallPatternsOnManyNames) {
  constexpr NamesSize kNames{.names = 100'000, .bytes = 100'000 * 60};
  const std::vector<std::string> usual{R"(^model\.layers\.(\d+)\.self_attn\.([qkv])_proj\.weight$)",
                                       "(weight|bias)$", "^module\\.", "^(.*)\\.gamma$",
                                       R"(^transformer\.h\.([0-9]+)\.mlp\.(c_fc|c_proj)\.(weight|bias)$)"};
  PatternWork work;
  for (int i = 0; i < 60; ++i) {
    for (const std::string& text : usual) EXPECT_NO_THROW(make_and_look(work, Pattern(text), kNames)) << text;
  }
}

// A list of names is a large pattern and a cheap one.
TEST(PatternWork, TakesListsOfNames) {
  std::string list = "^(?:none";
  for (int i = 0; i < 500; ++i) list += "|model\\.layers\\." + std::to_string(i) + "\\.weight";
  PatternWork work;
  EXPECT_NO_THROW(make_and_look(work, Pattern(list + ")$"), {.names = 33'000, .bytes = 2'000'000}));
}

TEST(PatternWork, CountsNoStepsWhereThereAreFewChoices) {
  for (const char* text : {"^(.*)\\.(.*)\\.(.*)\\.(.*)$", "(?i)bias$", R"(layers\.(?P<i>\d{1,2})\.)",
                           "[]^a]+?b", "a|b|c", "[^]a]{4}"})
    EXPECT_EQ(Pattern(text).steps(), 0U) << text;
}

// Some 3 ns a step: 2^28 of them and 64 for each byte of the names are less than a second.
TEST(PatternWork, CountsEveryStepOfLargePatterns) {
  for (const std::string& text : kCostly) {
    const Pattern pattern(text);
    ASSERT_GT(pattern.steps(), 0U) << text;
    constexpr NamesSize kOne{.names = 1, .bytes = 10'000};
    PatternWork work;
    work.show(kOne);
    std::uint64_t steps = 0;
    EXPECT_EQ(code_of([&] {
                while (true) {
                  work.look(pattern, kOne);
                  steps += kOne.bytes * pattern.steps();
                }
              }),
              Errc::expansion_limit)
        << text;
    EXPECT_LE(steps, (std::uint64_t{1} << 28U) + 64 * (kOne.bytes + 64)) << text;
  }
}

// Before anything is asked of the work that all patterns do: one pattern, alone, on however many names.
TEST(Pattern, OfManyStepsStopsByItself) {
  const std::string name(1000, 'a');
  for (const std::string& text : kCostly) {
    const Pattern pattern(text);
    if (pattern.steps() <= 64) continue;  // allowed for each byte
    const auto by = pattern.replacement("x");
    std::uint64_t steps = 0;
    std::uint64_t bytes = 0;
    EXPECT_EQ(code_of([&] {
                for (int i = 0; i < 10'000; ++i) {
                  if (i % 2 == 0)
                    static_cast<void>(pattern.matches(name));
                  else
                    static_cast<void>(pattern.replace_all(name, by));
                  steps += pattern.steps() * name.size();
                  bytes += name.size();
                }
              }),
              Errc::expansion_limit)
        << text;
    EXPECT_LE(steps, (std::uint64_t{1} << 28U) + 64 * bytes) << text;
  }
}

TEST(Pattern, FoundTellsNamesAndPatternsInOnePass) {
  PatternWork work;
  const Found both = found({"^a", "z", "b$"}, {"ab", "ac", "cb", "cd"}, work);
  EXPECT_EQ(both.names, (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(both.unmatched, std::vector<std::string>{"z"});
}

}  // namespace
}  // namespace ballast
