// SPDX-License-Identifier: Apache-2.0
// The loops of stats over a block of values, for each kind of vector instructions: the same bits from all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "tensor/isa.h"

namespace ballast {

/// Independent sums, whatever the machine: no instruction set changes a result.
inline constexpr std::size_t kStatsLanes = 16;

struct StatsPart {
  std::uint64_t count = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t neg_inf = 0;
  std::uint64_t zeros = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double squares = 0;  // of the distances from the mean

  [[nodiscard]] std::uint64_t finite() const { return count - nan - inf; }

  void append(const StatsPart& next) {
    const auto here = static_cast<double>(finite());
    const auto there = static_cast<double>(next.finite());
    if (there > 0) {
      const double distance = next.mean - mean;
      mean += distance * (there / (here + there));
      squares += next.squares + distance * distance * (here * there / (here + there));
    }
    count += next.count;
    nan += next.nan;
    inf += next.inf;
    neg_inf += next.neg_inf;
    zeros += next.zeros;
    min = std::min(min, next.min);
    max = std::max(max, next.max);
  }
};

/// `padded` values are whole groups of lanes, the last `padding` of them NaN, which no sum and no extreme
/// sees.
template <class T>
[[nodiscard]] StatsPart look_at_padded(const T* values, std::size_t padded, std::size_t padding, Isa isa);

}  // namespace ballast
