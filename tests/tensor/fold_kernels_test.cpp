// SPDX-License-Identifier: Apache-2.0
#include "tensor/fold_kernels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/plane_support.h"

namespace ballast {
namespace {

constexpr std::size_t kPitch = 200;

template <class T>
struct Sums {
  std::vector<T> absmax = std::vector<T>(kPitch);
  std::vector<double> squares = std::vector<double>(kPitch);
  std::vector<BlockSums<T>> blocks = std::vector<BlockSums<T>>(4);
  std::vector<RowSums> rows = {};

  // By one element after the other.
  void add(T value, std::size_t row, std::size_t col) {
    BlockSums<T>& block = blocks[col / 64];
    if (std::isnan(value)) {
      ++block.nan;
      return;
    }
    const auto number = static_cast<double>(value);
    block.min = std::min(block.min, value);
    block.max = std::max(block.max, value);
    block.sum += number;
    absmax[col] = std::max(absmax[col], std::fabs(value));
    squares[col] += number * number;
    rows[row].squares += number * number;
    rows[row].absmax = std::max(rows[row].absmax, std::fabs(number));
  }
};

void expect_near(double a, double b, double scale) {
  EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-12 * scale)
      << a << " and " << b;
}

template <class T>
void expect_sums_of_a_loop(const std::vector<T>& values, std::size_t rows, std::size_t cols, Isa isa) {
  Sums<T> plain;
  Sums<T> fast;
  for (int again = 0; again < 2; ++again) {  // what is known already stays known
    plain.rows.assign(rows, {});
    fast.rows.assign(rows, {});
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c) plain.add(values[r * kPitch + c], r, c);
    }
    fold_rows<T>(values.data(), kPitch, rows, cols, {fast.absmax.data(), fast.squares.data()},
                 fast.blocks.data(), fast.rows.data(), isa);
  }
  EXPECT_EQ(plain.absmax, fast.absmax);
  EXPECT_EQ(plain.squares, fast.squares);  // the same additions in the same order
  for (std::size_t r = 0; r < rows; ++r) {
    EXPECT_EQ(plain.rows[r].absmax, fast.rows[r].absmax);
    expect_near(plain.rows[r].squares, fast.rows[r].squares, plain.rows[r].squares);
  }
  for (std::size_t b = 0; b < plain.blocks.size(); ++b) {
    EXPECT_EQ(plain.blocks[b].min, fast.blocks[b].min);
    EXPECT_EQ(plain.blocks[b].max, fast.blocks[b].max);
    EXPECT_EQ(plain.blocks[b].nan, fast.blocks[b].nan);
    expect_near(plain.blocks[b].sum, fast.blocks[b].sum, 1e4);
  }
}

template <class T>
void expect_sums_of_every_size(Isa isa) {
  const bool only_finite = true;
  std::vector<T> values;
  for (const double value : some_values(kPitch * 64, 1, only_finite)) values.push_back(static_cast<T>(value));
  for (std::size_t r = 0; r < 64; ++r) {
    values[r * kPitch + r] = std::numeric_limits<T>::quiet_NaN();
    values[r * kPitch + 120] = static_cast<T>(-0.0);
  }
  values[3 * kPitch + 150] = -std::numeric_limits<T>::infinity();
  for (std::size_t cols = 1; cols < kPitch; cols += cols < 70 ? 1 : 13) {
    SCOPED_TRACE(cols);
    expect_sums_of_a_loop(values, 5, cols, isa);
  }
  for (const std::size_t rows : {1U, 2U, 63U, 64U}) expect_sums_of_a_loop(values, rows, 199, isa);
}

TEST(FoldKernels, EveryInstructionSetGivesTheSumsOfALoop) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa > best_isa()) continue;
    expect_sums_of_every_size<float>(isa);
    expect_sums_of_every_size<double>(isa);
  }
}

}  // namespace
}  // namespace ballast
