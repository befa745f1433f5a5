// SPDX-License-Identifier: Apache-2.0
// One row of a picture, added to what is known of its columns: the loop of pyramids.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/isa.h"

namespace ballast {

/// Of each column: NaN is counted, and left out of the rest.
template <class T>
struct ColumnSums {
  T* min;
  T* max;
  double* sum;
  std::uint32_t* nan;
  double* squares;
};

struct RowSums {
  double squares = 0;
  double absmax = 0;
};

template <class T>
[[nodiscard]] RowSums fold_row(const T* values, std::size_t count, const ColumnSums<T>& columns, Isa isa);

}  // namespace ballast
