// SPDX-License-Identifier: Apache-2.0
// Written once, and built for each kind of instructions: the attribute of the function it is inlined into
// decides. FMA is not used.
#include "tensor/stats_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "base/instructions.h"

namespace ballast {
namespace {

template <class T>
using Mask = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
struct Lanes {
  std::array<Mask<T>, kStatsLanes> nan{};
  std::array<Mask<T>, kStatsLanes> inf{};
  std::array<Mask<T>, kStatsLanes> zeros{};
  std::array<T, kStatsLanes> min;
  std::array<T, kStatsLanes> max;
  std::array<double, kStatsLanes> sum{};

  Lanes() {
    min.fill(std::numeric_limits<T>::infinity());
    max.fill(-std::numeric_limits<T>::infinity());
  }
};

template <class T>
BALLAST_LOOP StatsPart look(const T* values, std::size_t padded, std::size_t padding) {
  Lanes<T> lanes;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (std::size_t i = 0; i < padded; i += kStatsLanes) {
    for (std::size_t k = 0; k < kStatsLanes; ++k) {
      const T value = values[i + k];
      const T size = std::fabs(value);
      const bool finite = size < kInfinity;
      lanes.nan[k] += value != value ? 1U : 0U;
      lanes.inf[k] += size == kInfinity ? 1U : 0U;
      lanes.zeros[k] += value == T{0} ? 1U : 0U;
      const T low = finite ? value : kInfinity;
      const T high = finite ? value : -kInfinity;
      lanes.min[k] = low < lanes.min[k] ? low : lanes.min[k];
      lanes.max[k] = high > lanes.max[k] ? high : lanes.max[k];
      lanes.sum[k] += static_cast<double>(finite ? value : T{0});
    }
  }
  StatsPart part;
  part.count = padded - padding;
  double sum = 0;
  for (std::size_t k = 0; k < kStatsLanes; ++k) {
    part.nan += lanes.nan[k];
    part.inf += lanes.inf[k];
    part.zeros += lanes.zeros[k];
    part.min = std::min(part.min, static_cast<double>(lanes.min[k]));
    part.max = std::max(part.max, static_cast<double>(lanes.max[k]));
    sum += lanes.sum[k];
  }
  part.nan -= padding;
  if (part.inf > 0)
    part.neg_inf = static_cast<std::uint64_t>(std::count(values, values + padded, -kInfinity));
  if (part.finite() == 0) return part;
  part.mean = sum / static_cast<double>(part.finite());
  std::array<double, kStatsLanes> squares{};
  for (std::size_t i = 0; i < padded; i += kStatsLanes) {
    for (std::size_t k = 0; k < kStatsLanes; ++k) {
      const T value = values[i + k];
      const double distance = std::fabs(value) < kInfinity ? static_cast<double>(value) - part.mean : 0.0;
      squares[k] += distance * distance;
    }
  }
  for (const double square : squares) part.squares += square;
  return part;
}

template <class T>
BALLAST_AVX2 StatsPart look_avx2(const T* values, std::size_t padded, std::size_t padding) {
  return look(values, padded, padding);
}

template <class T>
BALLAST_AVX512 StatsPart look_avx512(const T* values, std::size_t padded, std::size_t padding) {
  return look(values, padded, padding);
}

}  // namespace

template <class T>
StatsPart look_at_padded(const T* values, std::size_t padded, std::size_t padding, Isa isa) {
  if (isa == Isa::avx512) return look_avx512(values, padded, padding);
  if (isa == Isa::avx2) return look_avx2(values, padded, padding);
  return look(values, padded, padding);
}

template StatsPart look_at_padded(const float*, std::size_t, std::size_t, Isa);
template StatsPart look_at_padded(const double*, std::size_t, std::size_t, Isa);

}  // namespace ballast
