// SPDX-License-Identifier: Apache-2.0
// Written once, and built for each kind of instructions, as stats_kernels.cpp is.
#include "tensor/fold_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>

#define BALLAST_LOOP [[gnu::always_inline]] inline
#if defined(__x86_64__)
#define BALLAST_AVX2 [[gnu::target("avx2")]]
#define BALLAST_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]]
#else
#define BALLAST_AVX2
#define BALLAST_AVX512
#endif

namespace ballast {
namespace {

constexpr std::size_t kFoldLanes = 16;

template <class T>
struct RowLanes {
  std::array<double, kFoldLanes> squares{};
  std::array<T, kFoldLanes> most{};
};

// Columns [c, c + kFoldLanes). What is loaded first and stored last does not make the compiler wonder what
// lies where.
template <class T>
BALLAST_LOOP void fold_lanes(const T* values, std::size_t c, const ColumnSums<T>& columns, RowLanes<T>& row) {
  std::array<T, kFoldLanes> low;
  std::array<T, kFoldLanes> high;
  std::array<double, kFoldLanes> numbers;
  std::array<double, kFoldLanes> sums;
  std::array<double, kFoldLanes> squares;
  std::array<std::uint32_t, kFoldLanes> nan;
  for (std::size_t k = 0; k < kFoldLanes; ++k) {
    const T value = values[c + k];
    const T least = columns.min[c + k];
    const T largest = columns.max[c + k];
    low[k] = value < least ? value : least;
    high[k] = value > largest ? value : largest;
    const T size = std::fabs(value);
    row.most[k] = size > row.most[k] ? size : row.most[k];
  }
  for (std::size_t k = 0; k < kFoldLanes; ++k) {
    const T value = values[c + k];
    nan[k] = columns.nan[c + k] + (value != value ? 1U : 0U);
  }
  for (std::size_t k = 0; k < kFoldLanes; ++k) {
    const T value = values[c + k];
    numbers[k] = static_cast<double>(value == value ? value : T{0});
    sums[k] = columns.sum[c + k] + numbers[k];
    squares[k] = columns.squares[c + k] + numbers[k] * numbers[k];
    row.squares[k] += numbers[k] * numbers[k];
  }
  for (std::size_t k = 0; k < kFoldLanes; ++k) columns.min[c + k] = low[k];
  for (std::size_t k = 0; k < kFoldLanes; ++k) columns.max[c + k] = high[k];
  for (std::size_t k = 0; k < kFoldLanes; ++k) columns.nan[c + k] = nan[k];
  for (std::size_t k = 0; k < kFoldLanes; ++k) columns.sum[c + k] = sums[k];
  for (std::size_t k = 0; k < kFoldLanes; ++k) columns.squares[c + k] = squares[k];
}

template <class T>
BALLAST_LOOP RowSums fold_values(const T* values, std::size_t count, const ColumnSums<T>& columns) {
  RowLanes<T> row;
  std::size_t c = 0;
  for (; c + kFoldLanes <= count; c += kFoldLanes) fold_lanes(values, c, columns, row);
  for (; c < count; ++c) {
    const T value = values[c];
    if (value != value) {
      ++columns.nan[c];
      continue;
    }
    const auto number = static_cast<double>(value);
    columns.min[c] = std::min(columns.min[c], value);
    columns.max[c] = std::max(columns.max[c], value);
    columns.sum[c] += number;
    columns.squares[c] += number * number;
    row.squares[0] += number * number;
    row.most[0] = std::max(row.most[0], std::fabs(value));
  }
  RowSums sums;
  for (std::size_t k = 0; k < kFoldLanes; ++k) {
    sums.squares += row.squares[k];
    sums.absmax = std::max(sums.absmax, static_cast<double>(row.most[k]));
  }
  return sums;
}

template <class T>
BALLAST_AVX2 RowSums fold_avx2(const T* values, std::size_t count, const ColumnSums<T>& columns) {
  return fold_values(values, count, columns);
}

template <class T>
BALLAST_AVX512 RowSums fold_avx512(const T* values, std::size_t count, const ColumnSums<T>& columns) {
  return fold_values(values, count, columns);
}

}  // namespace

template <class T>
RowSums fold_row(const T* values, std::size_t count, const ColumnSums<T>& columns, Isa isa) {
  if (isa == Isa::avx512) return fold_avx512(values, count, columns);
  if (isa == Isa::avx2) return fold_avx2(values, count, columns);
  return fold_values(values, count, columns);
}

template RowSums fold_row(const float*, std::size_t, const ColumnSums<float>&, Isa);
template RowSums fold_row(const double*, std::size_t, const ColumnSums<double>&, Isa);

}  // namespace ballast
