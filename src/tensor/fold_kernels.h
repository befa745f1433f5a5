// SPDX-License-Identifier: Apache-2.0
// Some rows of a picture, added to what is known of its columns, its blocks and the rows themselves: the loop
// of pyramids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "tensor/isa.h"

namespace ballast {

/// Columns of a block.
inline constexpr std::size_t kFoldColumns = 64;
/// Rows that are folded together at most.
inline constexpr std::size_t kMostFoldRows = 64;

/// Of each column. NaN is left out, here and below.
template <class T>
struct ColumnSums {
  T* absmax;
  double* squares;
};

/// Of the columns [64 i, 64 i + 64).
template <class T>
struct BlockSums {
  T min = std::numeric_limits<T>::infinity();
  T max = -std::numeric_limits<T>::infinity();
  std::uint32_t nan = 0;
  double sum = 0;
};

struct RowSums {
  double squares = 0;
  double absmax = 0;
};

/// Row r begins at values + r * pitch. `blocks` has one for each 64 columns begun, `found` one for each row.
template <class T>
void fold_rows(const T* values, std::size_t pitch, std::size_t rows, std::size_t cols,
               const ColumnSums<T>& columns, BlockSums<T>* blocks, RowSums* found, Isa isa);

}  // namespace ballast
