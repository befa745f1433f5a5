// SPDX-License-Identifier: Apache-2.0
#include "tensor/fold_kernels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/plane_support.h"

namespace ballast {
namespace {

template <class T>
struct Sums {
  std::vector<T> min = std::vector<T>(100, std::numeric_limits<T>::infinity());
  std::vector<T> max = std::vector<T>(100, -std::numeric_limits<T>::infinity());
  std::vector<double> sum = std::vector<double>(100);
  std::vector<std::uint32_t> nan = std::vector<std::uint32_t>(100);
  std::vector<double> squares = std::vector<double>(100);

  RowSums fold(const std::vector<T>& values, std::size_t count, Isa isa) {
    return fold_row(values.data(), count, {min.data(), max.data(), sum.data(), nan.data(), squares.data()},
                    isa);
  }
};

template <class T>
void expect_same_columns(Isa isa) {
  const bool only_finite = true;
  for (std::size_t count = 0; count <= 100; ++count) {
    Sums<T> plain;
    Sums<T> fast;
    for (unsigned row = 0; row < 5; ++row) {
      std::vector<T> values;
      for (const double value : some_values(100, 100 * row + 1, only_finite))
        values.push_back(static_cast<T>(value));
      values[row] = std::numeric_limits<T>::quiet_NaN();
      values[40 + row] = -std::numeric_limits<T>::infinity();
      values[row + 50] = static_cast<T>(-0.0);
      const RowSums a = plain.fold(values, count, Isa::scalar);
      const RowSums b = fast.fold(values, count, isa);
      EXPECT_EQ(a.absmax, b.absmax);
      EXPECT_TRUE(std::isinf(a.squares) ? std::isinf(b.squares)
                                        : std::fabs(a.squares - b.squares) <= 1e-12 * a.squares);
    }
    EXPECT_EQ(plain.min, fast.min);
    EXPECT_EQ(plain.max, fast.max);
    EXPECT_EQ(plain.sum, fast.sum);
    EXPECT_EQ(plain.nan, fast.nan);
    EXPECT_EQ(plain.squares, fast.squares);
  }
}

TEST(FoldKernels, EveryInstructionSetGivesTheSameColumns) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa > best_isa()) continue;
    expect_same_columns<float>(isa);
    expect_same_columns<double>(isa);
  }
}

}  // namespace
}  // namespace ballast
