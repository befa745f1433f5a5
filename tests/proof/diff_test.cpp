// SPDX-License-Identifier: Apache-2.0
#include "ballast/diff.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "ballast/error.h"
#include "ballast/runtime.h"

namespace ballast {
namespace {

using testing::DoubleEq;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Checkpoint with(const std::string& name, const Tensor& tensor) {
  Checkpoint checkpoint;
  checkpoint.add(name, tensor);
  return checkpoint;
}

TensorDiff compared(const Tensor& a, const Tensor& b, const DiffOptions& options = {}) {
  const DiffReport report = diff(with("x", a), with("x", b), options);
  EXPECT_THAT(report.tensors, SizeIs(1));
  return report.tensors[0];
}

Tensor floats(std::initializer_list<float> values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

TEST(Diff, EqualBitsAreEqualWhateverTheStrides) {
  const Tensor a = Tensor::from<float>({1, 2, 3, 4, 5, kNan}, {2, 3});
  const Tensor b = Tensor::from<float>({1, 4, 2, 5, 3, kNan}, {3, 2}).t();
  EXPECT_EQ(compared(a, b).change, Change::equal);
  EXPECT_TRUE(diff(with("x", a), with("x", b)).same());
}

TEST(Diff, FiguresAreThoseOfTheirDefinitions) {
  const TensorDiff item = compared(floats({1, 2, -4, 0}), floats({1, 2.5F, -4, 0.125F}));
  EXPECT_EQ(item.change, Change::values);
  EXPECT_EQ(item.distance.count, 4U);
  EXPECT_EQ(item.distance.differing, 2U);
  EXPECT_EQ(item.distance.first, 1U);
  EXPECT_DOUBLE_EQ(item.distance.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(item.distance.max_rel, 1.0);  // 0 and 0.125
  EXPECT_THAT(item.distance.cosine,
              Optional(DoubleEq((1 + 5 + 16) / (std::sqrt(21) * std::sqrt(1 + 6.25 + 16 + 0.015625)))));
  EXPECT_THAT(item.distance.rel_l2, Optional(DoubleEq(std::sqrt(0.25 + 0.015625) / std::sqrt(21))));
  EXPECT_THAT(compared(floats({0, 0}), floats({0, 1})).distance.rel_l2, std::nullopt);
  EXPECT_THAT(item.distance.max_ulp, Optional(0x3E000000U));  // from 0 to 0.125: the bits of 0.125
}

TEST(Diff, LengthsWhoseSquaresF64CannotHoldGiveNoFigures) {
  for (int exponent = -323; exponent <= 307; ++exponent) {
    const double unit = std::pow(10.0, exponent);
    const Tensor a = Tensor::from<double>({3 * unit, -unit}, {2});
    const Distance distance = compared(a, Tensor::from<double>({4 * unit, -2 * unit}, {2})).distance;
    SCOPED_TRACE(exponent);
    EXPECT_EQ(distance.rel_l2.has_value(), exponent >= -135 && exponent <= 153);
    EXPECT_EQ(distance.cosine.has_value(), distance.rel_l2.has_value());
    EXPECT_NEAR(distance.rel_l2.value_or(std::sqrt(0.2)), std::sqrt(0.2), 1e-14);
    EXPECT_NEAR(distance.cosine.value_or(14 / std::sqrt(200)), 14 / std::sqrt(200), 1e-14);
  }
}

TEST(Diff, LengthsAreThoseOfTheVectorsAndOfEqualTensorsWhenAskedFor) {
  const Tensor a = floats({3, 4});
  const TensorDiff item = compared(a, floats({3, 16}));
  EXPECT_DOUBLE_EQ(item.distance.l2_a, 5);
  EXPECT_DOUBLE_EQ(item.distance.l2_b, std::hypot(3, 16));
  EXPECT_DOUBLE_EQ(item.distance.l2_diff, 12);
  EXPECT_EQ(compared(a, a).distance.count, 0U);
  const TensorDiff equal = compared(a, a, {.lengths = true});
  EXPECT_EQ(equal.change, Change::equal);
  EXPECT_DOUBLE_EQ(equal.distance.l2_a, 5);
  EXPECT_DOUBLE_EQ(equal.distance.l2_b, 5);
  EXPECT_EQ(equal.distance.l2_diff, 0);
  EXPECT_EQ(equal.distance.count, 2U);
}

// A NaN at every place of blocks, lanes and pieces, on either side, in every floating-point dtype.
TEST(Diff, TheFirstNanOfEachSideIsFoundWhereverItStands) {
  const std::int64_t count = (1 << 20) + 2100;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    for (const std::int64_t place : {0, 1, 7, 1023, 1024, 40'000, 1 << 20, (1 << 20) + 2099}) {
      std::vector<float> numbers(static_cast<std::size_t>(count), 1.0F);
      numbers[500] = 2;
      const Tensor plain = Tensor::from(numbers, {count}).to(dtype);
      numbers[500] = 1;
      numbers[static_cast<std::size_t>(place)] = kNan;
      numbers.back() = kNan;
      const Tensor odd = Tensor::from(numbers, {count}).to(dtype);
      const Distance in_b = compared(plain, odd).distance;
      EXPECT_EQ(in_b.nan_a, std::nullopt);
      EXPECT_THAT(in_b.nan_b, Optional(static_cast<std::uint64_t>(place)));
      const Distance in_a = compared(odd, plain).distance;
      EXPECT_THAT(in_a.nan_a, Optional(static_cast<std::uint64_t>(place)));
      EXPECT_EQ(in_a.nan_b, std::nullopt);
      numbers[500] = 3;
      const Distance in_both = compared(odd, Tensor::from(numbers, {count}).to(dtype)).distance;
      EXPECT_THAT(in_both.nan_a, Optional(static_cast<std::uint64_t>(place)));
      EXPECT_THAT(in_both.nan_b, Optional(static_cast<std::uint64_t>(place)));
    }
  }
}

TEST(Diff, UlpCountsTheNumbersBetween) {
  const float next = std::nextafter(1.0F, 2.0F);
  EXPECT_THAT(compared(floats({1}), floats({next})).distance.max_ulp, Optional(1U));
  EXPECT_THAT(compared(floats({-0.0F}), floats({0.0F})).distance.max_ulp, Optional(0U));
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_THAT(compared(floats({-tiny}), floats({tiny})).distance.max_ulp, Optional(2U));
  EXPECT_THAT(compared(Tensor::from<double>({1}, {1}), Tensor::from<double>({-1}, {1})).distance.max_ulp,
              Optional(2 * 0x3FF0000000000000U));
  EXPECT_THAT(compared(floats({kNan, 1}), floats({2, 1})).distance.max_ulp, Optional(0U));  // NaN is nowhere
}

TEST(Diff, ZerosOfTwoSignsDifferInBitsOnly) {
  const TensorDiff item = compared(floats({0, 1}), floats({-0.0F, 1}));
  EXPECT_EQ(item.change, Change::values);
  EXPECT_EQ(item.distance.differing, 0U);
  EXPECT_EQ(compared(floats({0, 1}), floats({-0.0F, 1}), {.tolerance = 1e-30}).change, Change::within);
}

TEST(Diff, WhatIsNotFiniteIsInfinitelyFarFromANumber) {
  EXPECT_EQ(compared(floats({kNan}), floats({1})).distance.max_abs, kInf);
  EXPECT_EQ(compared(floats({kInf}), floats({-kInf})).distance.max_abs, kInf);
  EXPECT_EQ(compared(floats({kInf, 1}), floats({kInf, 2})).distance.max_abs, 1);
  EXPECT_EQ(compared(floats({kNan, 1}), floats({kNan, 2})).distance.differing, 1U);
  EXPECT_EQ(compared(floats({kInf}), floats({3e38F}), {.tolerance = 1e300, .relative = 1}).change,
            Change::values);
}

TEST(Diff, ATolerancePassesWhatLiesWithinIt) {
  const Tensor a = floats({1, 100});
  const Tensor b = floats({1.25F, 110});
  EXPECT_EQ(compared(a, b, {.tolerance = 10}).change, Change::within);
  EXPECT_EQ(compared(a, b, {.tolerance = 9}).change, Change::values);
  EXPECT_EQ(compared(a, b, {.tolerance = 9}).distance.outside, 1U);
  EXPECT_EQ(compared(a, b, {.tolerance = 0.25, .relative = 0.1}).change, Change::within);
  EXPECT_TRUE(diff(with("x", a), with("x", b), {.tolerance = 10}).same());
  try {
    static_cast<void>(diff({}, {}, {.tolerance = -1}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
  }
}

TEST(Diff, OtherDtypesAreComparedByValue) {
  const Tensor a = floats({1, 0.1F, 3});
  const TensorDiff item = compared(a, a.to(DType::f16));
  EXPECT_EQ(item.change, Change::dtype);
  EXPECT_EQ(item.distance.differing, 1U);
  EXPECT_NEAR(item.distance.max_abs, 0.1 - 0.0999755859375, 1e-8);
  EXPECT_FALSE(item.distance.max_ulp.has_value());
  EXPECT_EQ(compared(a, a.to(DType::f16), {.tolerance = 1e-3}).change, Change::within);
  EXPECT_FALSE(diff(with("x", a), with("x", a.to(DType::f64))).same());
}

TEST(Diff, IntegersBeyondWhatDoublesHoldStillDiffer) {
  const TensorDiff item = compared(Tensor::from<std::int64_t>({(1LL << 60) + 1}, {1}),
                                   Tensor::from<std::int64_t>({1LL << 60}, {1}));
  EXPECT_EQ(item.change, Change::values);
}

TEST(Diff, NamesShapesAndRenamesAreTold) {
  Checkpoint a;
  a.add("same", floats({1}));
  a.add("shape", floats({1, 2}));
  a.add("old", floats({7, 8, 9}));
  a.add("gone", floats({5, 5, 5}));
  Checkpoint b;
  b.add("came", floats({6, 6, 6}));
  b.add("new", floats({7, 8, 9}));
  b.add("shape", Tensor::from<float>({1, 2}, {2, 1}));
  b.add("same", floats({1}));
  const DiffReport report = diff(a, b);
  const auto change = [&](const std::string& name) {
    for (const TensorDiff& item : report.tensors) {
      if (item.name == name) return item.change;
    }
    return Change::equal;
  };
  EXPECT_EQ(change("shape"), Change::shape);
  EXPECT_EQ(change("old"), Change::renamed);
  EXPECT_EQ(change("gone"), Change::only_a);
  EXPECT_EQ(change("came"), Change::only_b);
  EXPECT_EQ(report.count(Change::equal), 1U);
  EXPECT_THAT(report.tensors, SizeIs(5));  // "new" is told with "old"
  EXPECT_EQ(report.tensors[2].other, "new");
  EXPECT_EQ(diff(a, b, {.find_renamed = false}).count(Change::only_b), 2U);
}

TEST(Diff, TiedNamesInTheMetadataAreThere) {
  Checkpoint a = with("wte.weight", floats({1, 2}));
  a.add("head.weight", a.tensor("wte.weight"));
  Checkpoint b = with("wte.weight", floats({1, 2}));
  b.metadata = Metadata{{"head.weight", "wte.weight"}};
  EXPECT_TRUE(diff(a, b).same());
}

TEST(Diff, OneValueInALargeTensorIsFoundByAnyNumberOfThreads) {
  constexpr std::int64_t kCount = 5'000'000;
  const Tensor a = Tensor::zeros(DType::f32, {kCount});
  for (const std::int64_t at :
       {std::int64_t{0}, std::int64_t{1'048'575}, std::int64_t{1'048'576}, kCount - 1}) {
    Tensor b = Tensor::zeros(DType::f32, {kCount});
    b.mutable_span<float>()[static_cast<std::size_t>(at)] = 2;
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      const TensorDiff item = compared(a, b);
      EXPECT_EQ(item.distance.differing, 1U);
      EXPECT_EQ(item.distance.first, static_cast<std::uint64_t>(at));
      EXPECT_EQ(item.distance.count, static_cast<std::uint64_t>(kCount));
    }
  }
  set_thread_count(2);
}

TEST(Diff, EmptyCheckpointsAreTheSame) {
  EXPECT_THAT(diff({}, {}).tensors, IsEmpty());
  EXPECT_TRUE(diff(with("e", Tensor::zeros(DType::f32, {0, 3})), with("e", Tensor::zeros(DType::f32, {0, 3})))
                  .same());
}

// A square matrix, a vector, and what each file says: nothing (PyTorch's), or a layout of its own.
TEST(Diff, TheSameBitsInAnotherLayoutAreADifference) {
  const auto said = [](const std::string& layout) {
    Checkpoint checkpoint = with("w", Tensor::from<float>({1, 2, 3, 4}, {2, 2}));
    checkpoint.add("b", floats({1, 2}));
    if (!layout.empty()) checkpoint.metadata = Metadata{{"ballast.layout", layout}};
    return checkpoint;
  };
  for (const std::string a : {"", "pytorch", "native", "burn", "flax"})
    for (const std::string b : {"", "pytorch", "native", "burn", "flax"}) {
      const bool same = (a.empty() ? "pytorch" : a) == (b.empty() ? "pytorch" : b);
      const DiffReport report = diff(said(a), said(b), {.tolerance = 1});
      EXPECT_EQ(report.same(), same) << a << " and " << b;
      EXPECT_EQ(report.count(Change::layout), same ? 0U : 1U) << a << " and " << b;
      EXPECT_EQ(report.count(Change::equal), same ? 2U : 1U) << a << " and " << b;
    }
}

}  // namespace
}  // namespace ballast
