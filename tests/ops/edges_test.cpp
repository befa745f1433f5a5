// SPDX-License-Identifier: Apache-2.0
// Numbers at the edge of what a dtype or an argument can be. Expected values are those of torch 2.15,
// where 1.13 gives others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ballast/error.h"
#include "ballast/ops.h"
#include "ops/cases.h"

namespace ballast {
namespace {

using ops_tests::error_of;
using testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Work>
Errc code_of(const Work& work) {
  try {
    static_cast<void>(work());
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "not refused";
  return Errc::unsupported;
}

TEST(ActivationNumber, IsPyTorchsWhenNoneIsGiven) {
  const Tensor x = Tensor::from({-2.0F, -0.5F, 0.0F, 3.0F}, {1, 4});
  EXPECT_EQ(error_of(activate(x, Activation::Kind::elu), elu(x)), 0);
  EXPECT_EQ(error_of(activate(x, Activation::Kind::leaky_relu), leaky_relu(x)), 0);
  Activation later;
  later.kind = Activation::Kind::elu;
  EXPECT_EQ(error_of(activate(x, later), elu(x)), 0);
  EXPECT_EQ(error_of(activate(x, {Activation::Kind::leaky_relu, 0.0}), relu(x)), 0);
  const Tensor fused = linear(x, eye(4, 4), {}, {.activation = Activation::Kind::leaky_relu});
  EXPECT_LE(error_of(fused, leaky_relu(x)), 1e-7);
}

TEST(Bounds, OutsideTheDtypeBoundNothingOrAreRefused) {
  const Tensor x = Tensor::from<std::uint8_t>({0, 1, 255}, {3});
  EXPECT_THAT(minimum(x, 300).span<std::uint8_t>(), ElementsAre(0, 1, 255));
  EXPECT_THAT(maximum(x, -1).span<std::uint8_t>(), ElementsAre(0, 1, 255));
  EXPECT_THAT(clamp(x, -1, 300).span<std::uint8_t>(), ElementsAre(0, 1, 255));
  EXPECT_EQ(code_of([&] { return minimum(x, -1); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { return maximum(256, x); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { return minimum(x, Tensor::from<std::int64_t>({-1}, {})); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { return clamp(x, 300, {}); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { return clamp(x, {}, -1); }), Errc::invalid_argument);
  const Tensor wide = Tensor::from({std::numeric_limits<std::int64_t>::max(), std::int64_t{-5}}, {2});
  EXPECT_EQ(code_of([&] { return clamp(wide, 1e30, {}); }), Errc::invalid_argument);
  EXPECT_THAT(clamp(wide, -1e30, 1e30).span<std::int64_t>(),
              ElementsAre(std::numeric_limits<std::int64_t>::max(), -5));
}

TEST(Bounds, OfIntegersThatAreNotWholeGiveF32) {
  const Tensor x = Tensor::from<std::int64_t>({0, 1, 2, 3}, {4});
  EXPECT_THAT(clamp(x, 0.5, 2.5).span<float>(), ElementsAre(0.5F, 1.0F, 2.0F, 2.5F));
  EXPECT_THAT(clamp(x, -kInfinity, 2).span<std::int64_t>(), ElementsAre(0, 1, 2, 2));
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  EXPECT_THAT(clamp(Tensor::from({large}, {1}), 0, 0x1p60).span<std::int64_t>(), ElementsAre(large));
}

TEST(Bounds, ThatAreNaNGiveNaN) {
  for (const DType dtype : {DType::f32, DType::f16, DType::f64, DType::i64, DType::u8}) {
    const Tensor x = ones({3}, dtype);
    EXPECT_TRUE(all(isnan(clamp(x, kNan, 2.0))).item() != 0);
    EXPECT_TRUE(all(isnan(clamp(x, {}, kNan))).item() != 0);
  }
  EXPECT_TRUE(all(isnan(hardtanh(ones({3}), kNan, 1))).item() != 0);
  EXPECT_TRUE(all(isnan(hardtanh(ones({3}), -1, kNan))).item() != 0);
}

TEST(Reductions, RootsStayInsideF32WhereTheirSquaresDoNot) {
  EXPECT_FLOAT_EQ(static_cast<float>(stddev(Tensor::from({2e38F, -2e38F, 1e38F}, {3})).item()),
                  2.0816660e38F);
  EXPECT_FLOAT_EQ(static_cast<float>(stddev(Tensor::from({1e-30F, 3e-30F}, {2})).item()), 1.4142136e-30F);
  EXPECT_EQ(var(Tensor::from({3e38F, 3e38F}, {2})).item(), 0);
  EXPECT_EQ(stddev(Tensor::from({6e4F, -6e4F}, {2}).to(DType::bf16)).item(), 84480);
}

TEST(Reductions, NormZeroCountsNaN) {
  const Tensor x = Tensor::from({std::nanf(""), 0.0F, -0.0F, 1.0F}, {4});
  EXPECT_EQ(norm(x, 0).item(), 2);
  EXPECT_EQ(norm(x.to(DType::f64), 0).item(), 2);
  EXPECT_TRUE(std::isnan(norm(x, 1).item()));
}

TEST(Resize, LooksAtTheFactorWhereInterpolateDoes) {
  Generator generator(1);
  const auto same = [&](const Shape& shape, ResizeMode mode, double factor) {
    const Tensor x = randn(shape, generator);
    return error_of(resize(x, {.scale = {factor}, .mode = mode}), x) == 0;
  };
  EXPECT_TRUE(same({1, 4, 3, 3}, ResizeMode::nearest, 1.3));
  EXPECT_FALSE(same({1, 4, 3}, ResizeMode::nearest, 1.3));
  EXPECT_FALSE(same({1, 4, 3, 3, 3}, ResizeMode::nearest, 1.3));
  EXPECT_TRUE(same({1, 4, 3}, ResizeMode::linear, 1.3));
  EXPECT_TRUE(same({1, 4, 3, 3}, ResizeMode::linear, 1.3));
  EXPECT_TRUE(same({1, 4, 3, 3, 3}, ResizeMode::linear, 1.3));
  EXPECT_FALSE(same({1, 4, 3, 3}, ResizeMode::cubic, 1.3));
  EXPECT_THAT(resize(Tensor::from({0.0F, 1.0F, 2.0F}, {1, 1, 3}), {.scale = {1.3}}).span<float>(),
              ElementsAre(0, 0, 1));
  EXPECT_THAT(resize(Tensor::from({0.0F, 1.0F, 2.0F}, {1, 1, 1, 3}), {.scale = {1.0, 2.3}}).span<float>(),
              ElementsAre(0, 0, 1, 1, 2, 2));
}

TEST(Span, OfATensorWithoutANameKeepsIt) {
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  const auto kept = x.t().contiguous().span<float>();
  const Tensor reused = full({2, 2}, 9);  // would get the memory of what went
  float sum = 0;
  for (const float value : x.t().contiguous().span<float>()) sum = sum * 10 + value;
  EXPECT_THAT(kept, ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(sum, 1324);
  auto written = x.clone().mutable_span<float>();
  written[0] = 5;
  EXPECT_THAT(written, ElementsAre(5, 2, 3, 4));
  static_assert(!std::is_convertible_v<decltype(kept), std::span<const float>>);
  static_assert(!std::is_constructible_v<std::span<const float>, decltype(kept)>);
}

}  // namespace
}  // namespace ballast
