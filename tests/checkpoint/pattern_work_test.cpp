// SPDX-License-Identifier: Apache-2.0
// What many patterns may cost together, whoever keeps them.
#include <gtest/gtest.h>

#include "ballast/error.h"
#include "ballast/steps.h"
#include "base/error_of.h"
#include "checkpoint/pattern.h"

namespace ballast {
namespace {

// What making a pattern costs counts, and what all that are kept together cost is one sum.
TEST(PatternWork, ManyCostlyPatternsAreTooMuchTogether) {
  Checkpoint in;
  in.add(std::string(60'000, 'a'), Tensor::zeros(DType::f32, {4}));
  std::string large;
  for (int i = 0; i < 15; ++i) large += "x{1000}";
  const std::string many_states = "((a?){30}){30}b";
  EXPECT_EQ(filter(in, {"a", large, many_states}).size(), 1U);
  const std::vector<std::string> larges(4096, large);
  const std::vector<rules::Rule> drops(4096, rules::Drop{large});
  EXPECT_EQ(code_of([&] { static_cast<void>(unmatched(larges, {"a"})); }), Errc::expansion_limit);
  EXPECT_EQ(code_of([&] { static_cast<void>(rules::apply(in, drops)); }), Errc::expansion_limit);
  const std::vector<std::string> costly(100, many_states);
  const KeyFilter kept(costly, {});
  EXPECT_EQ(code_of([&] { static_cast<void>(kept.passes(std::string(60'000, 'a'))); }),
            Errc::expansion_limit);
}

// Each of many patterns looks through each of many names.
TEST(Rules, LookThroughNamesSoOftenAndNoMore) {
  Checkpoint in;
  in.add(std::string(65'000, 'a'), Tensor::zeros(DType::f32, {4}));
  const std::vector<rules::Rule> some(1000, rules::Drop{"b"});
  EXPECT_EQ(rules::apply(in, some).checkpoint.size(), 1U);
  const std::vector<rules::Rule> many(10'000, rules::Drop{"b"});
  EXPECT_EQ(code_of([&] { static_cast<void>(rules::apply(in, many)); }), Errc::expansion_limit);
  EXPECT_EQ(code_of([&] { static_cast<void>(filter(in, std::vector<std::string>(4097, "a"))); }),
            Errc::too_many);
  EXPECT_EQ(filter(in, std::vector<std::string>(4096, "^a+$")).size(), 1U);
}

// Many short names cost more than their letters: each is a look by each pattern.
TEST(PatternWork, ALookAtANameCostsMoreThanItsLetters) {
  const std::vector<std::string_view> names(5'000, "a");
  std::vector<std::string> patterns;
  for (int i = 0; i < 4096; ++i) patterns.push_back("b" + std::to_string(i));
  EXPECT_EQ(code_of([&] { static_cast<void>(unmatched(patterns, names)); }), Errc::expansion_limit);
  patterns.resize(100);
  EXPECT_EQ(unmatched(patterns, names).size(), 100U);
}

}  // namespace
}  // namespace ballast
