// SPDX-License-Identifier: Apache-2.0
// Written once, and built for each kind of instructions, as stats_kernels.cpp is.
#include "tensor/fold_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/instructions.h"

namespace ballast {
namespace {

// The compilers' own vectors: of this many loops over arrays they make no good ones.
template <class T, std::size_t kLanes>
using Vector [[gnu::vector_size(kLanes * sizeof(T))]] = T;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <class T, std::size_t kLanes>
struct RowLanes {
  Vector<double, kLanes> squares{};
  Vector<T, kLanes> most{};
};

template <class T, std::size_t kLanes>
struct BlockLanes {
  Vector<T, kLanes> low = Vector<T, kLanes>{} + std::numeric_limits<T>::infinity();
  Vector<T, kLanes> high = Vector<T, kLanes>{} - std::numeric_limits<T>::infinity();
  Vector<Bits<T>, kLanes> nan{};
  Vector<double, kLanes> sum{};
};

// kVectors * kLanes columns, which stay in registers while all rows pass by.
template <std::size_t kVectors, std::size_t kLanes, class T>
BALLAST_LOOP void fold_group(const T* values, std::size_t pitch, std::size_t rows, T* absmax, double* squares,
                             BlockLanes<T, kLanes>& block, RowLanes<T, kLanes>* lanes) {
  Vector<T, kLanes> most[kVectors];
  Vector<double, kLanes> lengths[kVectors];
  std::memcpy(&most, absmax, sizeof(most));
  std::memcpy(&lengths, squares, sizeof(lengths));
  BlockLanes<T, kLanes> here = block;
  for (std::size_t r = 0; r < rows; ++r) {
    RowLanes<T, kLanes> row = lanes[r];
#pragma GCC unroll 8
    for (std::size_t k = 0; k < kVectors; ++k) {
      Vector<T, kLanes> value;
      std::memcpy(&value, values + r * pitch + k * kLanes, sizeof(value));
      here.low = value < here.low ? value : here.low;
      here.high = here.high < value ? value : here.high;
      const Vector<Bits<T>, kLanes> is_nan = value != value;  // -1 in each lane that is
      here.nan -= is_nan;
      Vector<Bits<T>, kLanes> bits;
      std::memcpy(&bits, &value, sizeof(bits));
      bits &= ~is_nan;
      std::memcpy(&value, &bits, sizeof(value));
      bits &= std::numeric_limits<Bits<T>>::max();
      Vector<T, kLanes> size;
      std::memcpy(&size, &bits, sizeof(size));
      most[k] = most[k] < size ? size : most[k];
      row.most = row.most < size ? size : row.most;
      const Vector<double, kLanes> wide = __builtin_convertvector(value, Vector<double, kLanes>);
      const Vector<double, kLanes> square = wide * wide;
      here.sum += wide;
      lengths[k] += square;
      row.squares += square;
    }
    lanes[r] = row;
  }
  block = here;
  std::memcpy(absmax, &most, sizeof(most));
  std::memcpy(squares, &lengths, sizeof(lengths));
}

template <class T>
BALLAST_LOOP void fold_one(T value, T& absmax, double& squares, BlockSums<T>& block, RowSums& row) {
  if (value != value) {
    ++block.nan;
    return;
  }
  const auto number = static_cast<double>(value);
  block.min = std::min(block.min, value);
  block.max = std::max(block.max, value);
  block.sum += number;
  absmax = std::max(absmax, std::fabs(value));
  squares += number * number;
  row.squares += number * number;
  row.absmax = std::max(row.absmax, std::fabs(number));
}

template <class T, std::size_t kLanes>
BALLAST_LOOP void add_lanes(const BlockLanes<T, kLanes>& lanes, BlockSums<T>& block) {
  for (std::size_t k = 0; k < kLanes; ++k) {
    block.min = std::min<T>(block.min, lanes.low[k]);
    block.max = std::max<T>(block.max, lanes.high[k]);
    block.nan += static_cast<std::uint32_t>(lanes.nan[k]);
    block.sum += lanes.sum[k];
  }
}

template <std::size_t kVectors, std::size_t kLanes, class T>
BALLAST_LOOP void fold_all(const T* values, std::size_t pitch, std::size_t rows, std::size_t cols,
                           const ColumnSums<T>& columns, BlockSums<T>* blocks, RowSums* found) {
  constexpr std::size_t kGroup = kVectors * kLanes;
  std::array<RowLanes<T, kLanes>, kMostFoldRows> lanes;
  std::fill_n(lanes.begin(), rows, RowLanes<T, kLanes>());
  for (std::size_t begin = 0; begin < cols; begin += kFoldColumns) {
    const std::size_t end = std::min(cols, begin + kFoldColumns);
    BlockSums<T>& block = blocks[begin / kFoldColumns];
    std::size_t c = begin;
    BlockLanes<T, kLanes> sums;
    for (; c + kGroup <= end; c += kGroup)
      fold_group<kVectors, kLanes>(values + c, pitch, rows, columns.absmax + c, columns.squares + c, sums,
                                   lanes.data());
    if (c > begin) add_lanes(sums, block);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = c; i < end; ++i)
        fold_one(values[r * pitch + i], columns.absmax[i], columns.squares[i], block, found[r]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      found[r].squares += lanes[r].squares[k];
      found[r].absmax = std::max(found[r].absmax, static_cast<double>(lanes[r].most[k]));
    }
  }
}

// Sixteen registers: as many columns as they hold the sums of.
template <class T>
BALLAST_AVX2 void fold_avx2(const T* values, std::size_t pitch, std::size_t rows, std::size_t cols,
                            const ColumnSums<T>& columns, BlockSums<T>* blocks, RowSums* found) {
  fold_all<2, 4>(values, pitch, rows, cols, columns, blocks, found);
}

template <class T>
BALLAST_AVX512 void fold_avx512(const T* values, std::size_t pitch, std::size_t rows, std::size_t cols,
                                const ColumnSums<T>& columns, BlockSums<T>* blocks, RowSums* found) {
  fold_all<8, 8>(values, pitch, rows, cols, columns, blocks, found);
}

}  // namespace

template <class T>
void fold_rows(const T* values, std::size_t pitch, std::size_t rows, std::size_t cols,
               const ColumnSums<T>& columns, BlockSums<T>* blocks, RowSums* found, Isa isa) {
  if (isa == Isa::avx512) return fold_avx512(values, pitch, rows, cols, columns, blocks, found);
  if (isa == Isa::avx2) return fold_avx2(values, pitch, rows, cols, columns, blocks, found);
  fold_all<1, 16 / sizeof(T)>(values, pitch, rows, cols, columns, blocks, found);
}

template void fold_rows(const float*, std::size_t, std::size_t, std::size_t, const ColumnSums<float>&,
                        BlockSums<float>*, RowSums*, Isa);
template void fold_rows(const double*, std::size_t, std::size_t, std::size_t, const ColumnSums<double>&,
                        BlockSums<double>*, RowSums*, Isa);

}  // namespace ballast
