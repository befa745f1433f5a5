// SPDX-License-Identifier: Apache-2.0
// Numbers drawn at random: torch draws others, so what is known of them is compared.
#include <gmock/gmock.h>

#include <set>

#include "ballast/error.h"
#include "ballast/ops.h"

namespace ballast {
namespace {

TEST(Draws, RandintScalesPhiloxWords) {
  Generator generator(0);  // the first words of key 0 and counter 0 are published with the algorithm
  const Tensor words = randint(0, std::int64_t{1} << 32, {3}, generator);
  EXPECT_EQ(words[0].item<std::int64_t>(), 0x6627e8d5);
  EXPECT_EQ(words[1].item<std::int64_t>(), 0xbc57ac4c);
}

TEST(Draws, RandintReachesEveryNumberAndNoOther) {
  Generator generator(3);
  for (const std::int64_t low : {-3, 0, 5}) {
    std::set<std::int64_t> seen;
    const Tensor drawn = randint(low, low + 4, {7, 100}, generator);
    for (const std::int64_t one : drawn.span<std::int64_t>()) seen.insert(one);
    EXPECT_THAT(seen, testing::ElementsAre(low, low + 1, low + 2, low + 3));
  }
  const Tensor wide = randint(INT64_MIN, INT64_MAX, {1000}, generator);
  EXPECT_LT(min(wide).item(), -8e18);
  EXPECT_GT(max(wide).item(), 8e18);
  EXPECT_EQ(randint(0, 5, {0, 2}, generator).numel(), 0);
  EXPECT_THROW(static_cast<void>(randint(2, 2, {1}, generator)), Error);
}

TEST(Draws, MultinomialDrawsAsOftenAsWeightsSay) {
  Generator generator(4);
  const Tensor weights = Tensor::from({0.0F, 1.0F, 3.0F, 0.0F}, {4});
  const Tensor drawn = multinomial(weights, 20000, true, generator);
  EXPECT_EQ(drawn.shape(), (Shape{20000}));
  const Tensor counts = sum(one_hot(drawn, 4), 0);
  EXPECT_EQ(counts[0].item(), 0);
  EXPECT_EQ(counts[3].item(), 0);
  EXPECT_NEAR(counts[2].item() / 20000, 0.75, 0.02);
}

TEST(Draws, MultinomialWithoutReplacementDrawsNothingTwice) {
  Generator generator(5);
  const Tensor weights = Tensor::from({1.0F, 2.0F, 0.0F, 5.0F, 1.0F, 1.0F, 1.0F, 9.0F}, {2, 4});
  double firsts = 0;
  for (int i = 0; i < 400; ++i) {
    const Tensor drawn = multinomial(weights, 3, false, generator);
    ASSERT_EQ(drawn.shape(), (Shape{2, 3}));
    for (std::int64_t row = 0; row < 2; ++row) {
      std::set<std::int64_t> seen;
      for (std::int64_t k = 0; k < 3; ++k) seen.insert(drawn[row][k].item<std::int64_t>());
      EXPECT_EQ(seen.size(), 3U);
      EXPECT_FALSE(row == 0 && seen.contains(2));
    }
    firsts += drawn[1][0].item<std::int64_t>() == 3 ? 1 : 0;
  }
  EXPECT_NEAR(firsts / 400, 0.75, 0.08);  // 9 of 12
}

TEST(Draws, MultinomialRefusesWeightsThatAreNone) {
  Generator generator(6);
  const auto refused = [&](const Tensor& weights, std::int64_t count, bool replacement) {
    try {
      static_cast<void>(multinomial(weights, count, replacement, generator));
    } catch (const Error& error) {
      return error.code() == Errc::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused(Tensor::from({1.0F, -1.0F}, {2}), 1, true));
  EXPECT_TRUE(refused(Tensor::from({0.0F, 0.0F}, {2}), 1, true));
  EXPECT_TRUE(refused(Tensor::from({1.0F, NAN}, {2}), 1, true));
  EXPECT_TRUE(refused(Tensor::from({1.0F, INFINITY}, {2}), 1, true));
  EXPECT_TRUE(refused(Tensor::from({1.0F, 0.0F}, {2}), 2, false));
  EXPECT_TRUE(refused(Tensor::from({1.0F, 1.0F}, {2}), 3, false));
  EXPECT_FALSE(refused(Tensor::from({1.0F, 1.0F}, {2}), 3, true));
}

TEST(Draws, LikeAnotherHaveItsShapeAndDtype) {
  Generator generator(7);
  const Tensor x = Tensor::zeros(DType::f16, {2, 3});
  for (const Tensor& one : {rand_like(x, generator), randn_like(x, generator)}) {
    EXPECT_EQ(one.shape(), x.shape());
    EXPECT_EQ(one.dtype(), x.dtype());
  }
}

}  // namespace
}  // namespace ballast
