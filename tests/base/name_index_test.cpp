// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/name_index.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <string>

namespace ballast::detail {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Many names share a hash here, and many more their low bits.
std::uint64_t bad_hash(const std::string& name) {
  return name.size() % 5;
}

TEST(NameIndex, AnEmptyOneFindsNothing) {
  EXPECT_FALSE(NameIndex().find(7, [](std::size_t) { return true; }));
}

TEST(NameIndex, FindsWhatAMapFindsThroughGrowthCollisionsAndReplacements) {
  std::mt19937 random(3);
  std::vector<std::string> names;
  std::map<std::string, std::size_t> expected;
  NameIndex index;
  for (std::size_t i = 0; i < 1000; ++i) {
    names.push_back(std::to_string(random() % 700));
    const std::string& name = names.back();
    index.reserve(i + 1);
    const auto known = expected.find(name);
    const auto before = index.put(bad_hash(name), i, [&](std::size_t at) { return names[at] == name; });
    EXPECT_EQ(before, known == expected.end() ? std::nullopt : std::optional(known->second));
    expected[name] = i;
  }
  for (int number = 0; number < 800; ++number) {
    const std::string name = std::to_string(number);
    const auto known = expected.find(name);
    EXPECT_EQ(index.find(bad_hash(name), [&](std::size_t at) { return names[at] == name; }),
              known == expected.end() ? std::nullopt : std::optional(known->second))
        << name;
  }
}

TEST(NameIndex, AddingANameTwiceLeavesTheFirst) {
  const std::vector<std::string> names = {"a", "b", "a"};
  NameIndex index;
  index.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(index.add(0, i, [&](std::size_t at) { return names[at] == names[i]; }), i < 2);
  EXPECT_EQ(index.find(0, [&](std::size_t at) { return names[at] == "a"; }), 0U);
}

TEST(NameIndex, AllAtOnceTellsOfEachNameThatComesAgain) {
  const std::vector<std::string> names = {"a", "b", "a", "c", "b", "a"};
  std::vector<std::pair<std::size_t, std::size_t>> again;
  NameIndex index;
  index.put_all(
      names.size(), [&](std::size_t i) { return bad_hash(names[i]); },
      [&](std::size_t i, std::size_t j) { return names[i] == names[j]; },
      [&](std::size_t i, std::size_t j) { again.emplace_back(i, j); });
  EXPECT_THAT(again, ElementsAre(Pair(0, 2), Pair(1, 4), Pair(2, 5)));
}

}  // namespace
}  // namespace ballast::detail
