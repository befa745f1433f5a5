// SPDX-License-Identifier: Apache-2.0
// The loops of every instruction set this machine has against the functions of <cmath> in double; the
// factories.
#include "ops/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ballast/ops.h"
#include "ops/elementwise.h"

namespace ballast {
namespace {

using ops::Unary;

std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa <= best_isa()) found.push_back(isa);
  }
  return found;
}

// From denormals to the largest, and what is special, for `which` where it has a meaning.
std::vector<float> inputs() {
  std::vector<float> x = {0.0F,
                          -0.0F,
                          1.0F,
                          -1.0F,
                          0.35F,
                          -0.35F,
                          0.625F,
                          0.92F,
                          3.0F,
                          -3.0F,
                          20.0F,
                          88.7F,
                          88.8F,
                          -87.4F,
                          -103.9F,
                          -104.1F,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest(),
                          std::numeric_limits<float>::denorm_min()};
  for (int e = -140; e <= 127; ++e) {
    for (const float m : {1.0F, 1.3F, 1.9F}) {
      x.push_back(std::ldexp(m, e));
      x.push_back(-std::ldexp(m, e));
    }
  }
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) * 0.0041F);
  return x;
}

class Kernel : public testing::TestWithParam<Unary> {};

TEST_P(Kernel, IsCloseToTheFunctionInEveryInstructionSet) {
  const Unary which = GetParam();
  const std::vector<float> x = inputs();
  const double p = which == Unary::clamp ? -1.5 : (which == Unary::softplus ? 2 : 0.7);
  const double q = which == Unary::clamp ? 2.5 : (which == Unary::softplus ? 20 : 1.1);
  for (const Isa isa : isas()) {
    std::vector<float> y(x.size());
    ops::kernels_of(isa).unary[static_cast<std::size_t>(which)](x.data(), y.data(),
                                                                static_cast<std::int64_t>(x.size()),
                                                                static_cast<float>(p), static_cast<float>(q));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto in = static_cast<double>(x[i]);
      const double exact = ops::unary_value(which, in, p, q);
      const auto expected = static_cast<float>(exact);
      // Activations are differences of nearly equal numbers far out: there the error is measured against the
      // input.
      const double scale =
          which >= Unary::relu ? std::max(std::abs(exact), std::abs(in) * 0.02) : std::abs(exact);
      if (std::isnan(expected) || std::isnan(y[i])) {
        ASSERT_EQ(std::isnan(y[i]), std::isnan(expected)) << "f(" << x[i] << ") = " << y[i] << ", should be "
                                                          << expected << ", isa " << static_cast<int>(isa);
      } else if (std::isinf(expected) || std::isinf(y[i])) {
        ASSERT_EQ(y[i], expected) << "f(" << x[i] << "), isa " << static_cast<int>(isa);
      } else {
        ASSERT_LE(std::abs(static_cast<double>(y[i]) - exact), 2e-6 * scale + 1e-38)
            << "f(" << x[i] << ") = " << y[i] << ", should be " << expected << ", isa "
            << static_cast<int>(isa);
      }
    }
  }
}

// Not those whose value at infinity is a matter of how they are written (silu, gelu, mish, …): their finite
// values are held against torch.
INSTANTIATE_TEST_SUITE_P(Each, Kernel,
                         testing::Values(Unary::neg, Unary::abs, Unary::exp, Unary::expm1, Unary::log,
                                         Unary::log1p, Unary::sqrt, Unary::rsqrt, Unary::reciprocal,
                                         Unary::square, Unary::sin, Unary::cos, Unary::erf, Unary::floor,
                                         Unary::ceil, Unary::round, Unary::trunc, Unary::sign, Unary::relu,
                                         Unary::sigmoid, Unary::log_sigmoid, Unary::tanh, Unary::clamp,
                                         Unary::elu, Unary::leaky_relu));

TEST(Kernels, RowsOfEveryLengthAreWholeAndNothingMore) {
  for (const Isa isa : isas()) {
    for (std::int64_t n = 0; n < 70; ++n) {
      std::vector<float> x(static_cast<std::size_t>(n), 2.0F);
      std::vector<float> y(static_cast<std::size_t>(n) + 1, -7.0F);
      ops::kernels_of(isa).unary[static_cast<std::size_t>(Unary::neg)](x.data(), y.data(), n, 0, 0);
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], -2.0F);
      ASSERT_EQ(y.back(), -7.0F);
      if (n == 0) continue;
      ASSERT_EQ(ops::kernels_of(isa).sum(x.data(), n), 2.0F * static_cast<float>(n));
      ASSERT_EQ(ops::kernels_of(isa).dot(x.data(), x.data(), n), 4.0F * static_cast<float>(n));
      ASSERT_EQ(ops::kernels_of(isa).max(x.data(), n), 2.0F);
    }
  }
}

TEST(Kernels, LongSumsStayExact) {
  const std::vector<float> x(10'000'000, 0.1F);
  EXPECT_NEAR(ops::kernels().sum(x.data(), static_cast<std::int64_t>(x.size())), 1e6, 0.1);
}

// The known answer of Philox-4x32-10 for counter 0 and key 0 (Random123's kat_vectors).
TEST(Generator, IsPhilox) {
  Generator generator(0);
  const Tensor x = rand({4}, generator);
  const std::uint32_t words[] = {0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U};
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(x.span<float>()[i], static_cast<float>(words[i] >> 8U) / 16777216.0F);
}

TEST(Generator, NumbersDependOnSeedCallAndPlaceAlone) {
  Generator a(5);
  Generator b(5);
  const Tensor longer = randn({10007}, a);
  const Tensor shorter = randn({100}, b);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(longer.span<float>()[i], shorter.span<float>()[i]);
  EXPECT_NE(rand({1}, a).item(), rand({1}, a).item());
  Generator c(6);
  EXPECT_NE(randn({1}, c).item(), shorter.index({0}).item());
}

TEST(Generator, HasTheMomentsItShouldHave) {
  Generator generator(1);
  const Tensor uniform = rand({200000}, generator);
  EXPECT_NEAR(mean(uniform).item(), 0.5, 0.005);
  EXPECT_NEAR(var(uniform).item(), 1.0 / 12, 0.002);
  EXPECT_GE(min(uniform).item(), 0);
  EXPECT_LT(max(uniform).item(), 1);
  const Tensor normal = randn({200000}, generator);
  EXPECT_NEAR(mean(normal).item(), 0, 0.01);
  EXPECT_NEAR(var(normal).item(), 1, 0.02);
  EXPECT_NEAR(mean(pow(normal, 4)).item(), 3, 0.1);
}

TEST(Factories, FillEveryDtype) {
  EXPECT_EQ(full({2, 2}, 3, DType::i8).span<std::int8_t>()[3], 3);
  EXPECT_EQ(ones({2}, DType::boolean).span<bool>()[1], true);
  EXPECT_EQ(ones({}, DType::bf16).item(), 1);
  EXPECT_EQ(sum(eye(3, 4)).item(), 3);
  EXPECT_EQ(zeros({0, 3}).numel(), 0);
}

}  // namespace
}  // namespace ballast
