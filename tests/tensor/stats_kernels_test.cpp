// SPDX-License-Identifier: Apache-2.0
#include "tensor/stats_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

namespace ballast {
namespace {

std::vector<Isa> what_runs_here() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (isa <= best_isa()) all.push_back(isa);
  return all;
}

template <class T>
std::vector<T> drawn(std::size_t size, double odd, std::mt19937& random) {
  constexpr T kOdd[] = {std::numeric_limits<T>::quiet_NaN(),
                        std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(),
                        T{0},
                        -T{0},
                        std::numeric_limits<T>::denorm_min(),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::lowest()};
  std::normal_distribution<double> normal(3, 100);
  std::bernoulli_distribution is_odd(odd);
  std::uniform_int_distribution<std::size_t> which(0, std::size(kOdd) - 1);
  std::vector<T> values(size);
  for (T& value : values) value = is_odd(random) ? kOdd[which(random)] : static_cast<T>(normal(random));
  return values;
}

template <class T>
void compare_all() {
  std::mt19937 random(7);
  for (std::size_t size = 0; size < 80; ++size) {
    for (const double odd : {0.0, 0.3, 1.0}) {
      std::vector<T> values = drawn<T>(size, odd, random);
      const std::size_t padded = (size + kStatsLanes - 1) / kStatsLanes * kStatsLanes;
      values.resize(padded, std::numeric_limits<T>::quiet_NaN());
      const StatsPart plain = look_at_padded(values.data(), padded, padded - size, Isa::scalar);
      for (const Isa isa : what_runs_here()) {
        const StatsPart part = look_at_padded(values.data(), padded, padded - size, isa);
        EXPECT_EQ(part.count, size);
        EXPECT_EQ(part.nan, plain.nan);
        EXPECT_EQ(part.inf, plain.inf);
        EXPECT_EQ(part.zeros, plain.zeros);
        EXPECT_EQ(part.min, plain.min);
        EXPECT_EQ(part.max, plain.max);
        EXPECT_EQ(std::bit_cast<std::uint64_t>(part.mean), std::bit_cast<std::uint64_t>(plain.mean));
        EXPECT_EQ(std::bit_cast<std::uint64_t>(part.squares), std::bit_cast<std::uint64_t>(plain.squares));
      }
    }
  }
}

TEST(StatsKernels, EveryInstructionSetGivesTheSameBits) {
  compare_all<float>();
  compare_all<double>();
}

}  // namespace
}  // namespace ballast
