// SPDX-License-Identifier: Apache-2.0
// Written once, and built for each kind of instructions, as stats_kernels.cpp is.
#include "tensor/fold_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

constexpr std::size_t kFoldLanes = 8;

// The compilers' own vectors: of this many loops over arrays they make no good ones.
template <class T>
using Vector [[gnu::vector_size(kFoldLanes * sizeof(T))]] = T;

template <class T>
struct RowLanes {
  Vector<double> squares{};
  Vector<T> most{};
};

// Columns [c, c + kFoldLanes).
template <class T>
BALLAST_LOOP void fold_lanes(const T* values, std::size_t c, const ColumnSums<T>& columns, RowLanes<T>& row) {
  Vector<T> here;
  Vector<T> low;
  Vector<T> high;
  Vector<double> sum;
  Vector<double> squares;
  Vector<std::uint32_t> nan;
  std::memcpy(&here, values + c, sizeof(here));
  std::memcpy(&low, columns.min + c, sizeof(low));
  std::memcpy(&high, columns.max + c, sizeof(high));
  std::memcpy(&sum, columns.sum + c, sizeof(sum));
  std::memcpy(&squares, columns.squares + c, sizeof(squares));
  std::memcpy(&nan, columns.nan + c, sizeof(nan));
  low = here < low ? here : low;
  high = here > high ? here : high;
  const auto is_nan = here != here;  // -1 in each lane that is
  nan -= __builtin_convertvector(is_nan, Vector<std::uint32_t>);
  const Vector<T> numbers = is_nan ? Vector<T>{} : here;
  const Vector<T> sizes = numbers < 0 ? -numbers : numbers;
  row.most = sizes > row.most ? sizes : row.most;
  const Vector<double> wide = __builtin_convertvector(numbers, Vector<double>);
  sum += wide;
  squares += wide * wide;
  row.squares += wide * wide;
  std::memcpy(columns.min + c, &low, sizeof(low));
  std::memcpy(columns.max + c, &high, sizeof(high));
  std::memcpy(columns.sum + c, &sum, sizeof(sum));
  std::memcpy(columns.squares + c, &squares, sizeof(squares));
  std::memcpy(columns.nan + c, &nan, sizeof(nan));
}

// `vectors`: where the machine has none so wide, they cost more than they give.
template <class T>
BALLAST_LOOP RowSums fold_values(const T* values, std::size_t count, const ColumnSums<T>& columns,
                                 bool vectors) {
  RowLanes<T> row;
  std::size_t c = 0;
  for (; vectors && c + kFoldLanes <= count; c += kFoldLanes) fold_lanes(values, c, columns, row);
  RowSums sums;
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
    sums.squares += number * number;
    sums.absmax = std::max(sums.absmax, std::fabs(number));
  }
  for (std::size_t k = 0; k < kFoldLanes; ++k) {
    sums.squares += row.squares[k];
    sums.absmax = std::max(sums.absmax, static_cast<double>(row.most[k]));
  }
  return sums;
}

template <class T>
BALLAST_AVX2 RowSums fold_avx2(const T* values, std::size_t count, const ColumnSums<T>& columns) {
  return fold_values(values, count, columns, true);
}

template <class T>
BALLAST_AVX512 RowSums fold_avx512(const T* values, std::size_t count, const ColumnSums<T>& columns) {
  return fold_values(values, count, columns, true);
}

}  // namespace

template <class T>
RowSums fold_row(const T* values, std::size_t count, const ColumnSums<T>& columns, Isa isa) {
  if (isa == Isa::avx512) return fold_avx512(values, count, columns);
  if (isa == Isa::avx2) return fold_avx2(values, count, columns);
  return fold_values(values, count, columns, false);
}

template RowSums fold_row(const float*, std::size_t, const ColumnSums<float>&, Isa);
template RowSums fold_row(const double*, std::size_t, const ColumnSums<double>&, Isa);

}  // namespace ballast
