// SPDX-License-Identifier: Apache-2.0
#include "proof/compare_kernels.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace ballast {
namespace {

std::vector<Isa> isas() {
  std::vector<Isa> all = {Isa::scalar};
  if (best_isa() >= Isa::avx2) all.push_back(Isa::avx2);
  if (best_isa() >= Isa::avx512) all.push_back(Isa::avx512);
  return all;
}

// Ordinary numbers, and every kind that is not.
template <class Float>
std::vector<Float> odd_numbers(std::size_t count, unsigned seed) {
  using Limits = std::numeric_limits<Float>;
  const Float special[] = {0,
                           -Float{0},
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           Limits::max(),
                           Limits::lowest()};
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Float> values(count);
  for (Float& value : values)
    value = random() % 3 == 0 ? special[random() % std::size(special)] : static_cast<Float>(normal(random));
  return values;
}

// One pair, as diff.h says it.
void add_pair(Comparison& sum, double a, double b, Tolerance tolerance) {
  const bool finite = std::isfinite(a) && std::isfinite(b);
  const double larger = std::max(std::fabs(a), std::fabs(b));
  if (finite) {
    sum.ab += a * b;
    sum.aa += a * a;
    sum.bb += b * b;
  }
  if (a == b || (std::isnan(a) && std::isnan(b))) return;
  ++sum.differing;
  const double distance = finite ? std::fabs(a - b) : std::numeric_limits<double>::infinity();
  sum.max_abs = std::max(sum.max_abs, distance);
  sum.max_rel = std::max(sum.max_rel, finite ? distance / larger : distance);
  if (distance > tolerance.absolute + (finite ? tolerance.relative * larger : 0)) ++sum.outside;
}

void expect_close(double found, double expected, const std::string& what) {
  EXPECT_NEAR(found, expected, 1e-12 * std::max(1.0, std::fabs(expected))) << what;
}

TEST(CompareKernels, EveryInstructionSetFindsWhatALoopOverPairsFinds) {
  for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 63U, 1000U, 1024U}) {
    const auto moderate = [](std::vector<double> values) {
      for (double& value : values)  // so that sums of squares stay finite
        if (std::fabs(value) > 1e100 && std::isfinite(value)) value = 1e100;
      return values;
    };
    const std::vector<double> a = moderate(odd_numbers<double>(count, 1));
    const std::vector<double> b = moderate(odd_numbers<double>(count, 2));
    for (const Tolerance tolerance :
         {Tolerance{0, 0}, Tolerance{0.5, 0}, Tolerance{0, 0.25}, Tolerance{0.1, 0.1}}) {
      Comparison expected;
      double aa = 0;
      for (std::size_t i = 0; i < count; ++i) {
        add_pair(expected, a[i], b[i], tolerance);
        if (std::isfinite(a[i])) aa += a[i] * a[i];
      }
      for (const Isa isa : isas()) {
        const std::string what =
            std::to_string(count) + " values, instructions " + std::to_string(static_cast<int>(isa));
        const Comparison found = compare_values(a.data(), b.data(), count, tolerance, isa);
        EXPECT_EQ(found.differing, expected.differing) << what;
        EXPECT_EQ(found.outside, expected.outside) << what;
        EXPECT_EQ(found.max_abs, expected.max_abs) << what;
        EXPECT_EQ(found.max_rel, expected.max_rel) << what;
        expect_close(found.ab, expected.ab, what);
        expect_close(found.aa, expected.aa, what);
        expect_close(found.bb, expected.bb, what);
        expect_close(squares(a.data(), count, isa), aa, what);
      }
    }
  }
}

// Steps by std::nextafter, counted.
std::uint64_t steps(float from, float to) {
  std::uint64_t count = 0;
  for (; from != to; from = std::nextafter(from, to)) ++count;
  return count;
}

TEST(CompareKernels, UlpsAreStepsOfNextafter) {
  const std::vector<float> a = {1.0F, -1e-44F, 0.0F, -0.0F, 3.0F, 0.0F};
  std::vector<float> b = {std::nextafter(1.0F, 2.0F), 1e-44F, -0.0F, 1e-45F, 3.0F, 0.0F};
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < a.size(); ++i) expected = std::max(expected, steps(a[i], b[i]));
  b.back() = std::numeric_limits<float>::infinity();  // does not count
  for (const Isa isa : isas()) {
    EXPECT_EQ(most_ulps<std::int32_t>(std::as_bytes(std::span(a)).data(), std::as_bytes(std::span(b)).data(),
                                      a.size(), 0x7F800000, isa),
              expected);
  }
}

template <class Signed, class Float>
void expect_one_result(Signed exponent) {
  const std::vector<Float> a = odd_numbers<Float>(1003, 5);
  const std::vector<Float> b = odd_numbers<Float>(1003, 6);
  const auto result = [&](Isa isa, std::size_t count) {
    return most_ulps<Signed>(std::as_bytes(std::span(a)).data(), std::as_bytes(std::span(b)).data(), count,
                             exponent, isa);
  };
  for (const Isa isa : isas())
    for (const std::size_t count : {0U, 1U, 5U, 17U, 1003U})
      EXPECT_EQ(result(isa, count), result(Isa::scalar, count));
}

TEST(CompareKernels, UlpsAreTheSameForEveryInstructionSet) {
  expect_one_result<std::int32_t, float>(0x7F800000);
  expect_one_result<std::int64_t, double>(0x7FF0000000000000);
}

// One odd value at every place of every length: nothing else makes a block odd, and nothing but NaN is one.
TEST(CompareKernels, OneOddValueIsNoticedWhereverItStands) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Isa isa : isas()) {
    for (std::size_t count = 1; count <= 40; ++count) {
      std::vector<double> plain(count, 1.5);
      EXPECT_FALSE(has_nan(plain.data(), count, isa));
      EXPECT_FALSE(compare_values(plain.data(), plain.data(), count, {}, isa).odd);
      for (std::size_t at = 0; at < count; ++at) {
        for (const double value : {kNan, kInfinity, -kInfinity}) {
          std::vector<double> odd = plain;
          odd[at] = value;
          EXPECT_EQ(has_nan(odd.data(), count, isa), std::isnan(value));
          EXPECT_TRUE(compare_values(odd.data(), plain.data(), count, {}, isa).odd);
          EXPECT_TRUE(compare_values(plain.data(), odd.data(), count, {}, isa).odd);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ballast
