// SPDX-License-Identifier: Apache-2.0
// How large values can be. Where sums cannot overflow, nothing becomes infinite or NaN, and a step of
// oneDNN's that would turn NaN into 0 gives what ours gives.
#pragma once

#include <limits>

#include "ballast/tensor.h"

namespace ballast::ops {

/// Nothing is known, or some value is infinite or NaN.
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// True when sums whose terms' magnitudes add up to this stay finite in F32, in any order and rounding.
[[nodiscard]] constexpr bool stays_finite(double bound) {
  return bound <= 1e37;
}

/// The largest magnitude in x, by looking at all values; kUnbounded where that is not worth it.
[[nodiscard]] double largest_magnitude(const Tensor& x);

/// What a convolution makes of a bound.
struct Gain {
  double factor = kUnbounded;
  double offset = 0;

  /// The bound of its results; it leaves room for rounding.
  [[nodiscard]] double of(double bound) const { return (factor * bound + offset) * 1.01; }
};

/// Of weights [out, …], each of which is used once for a result; and a bias for each, or none.
[[nodiscard]] Gain gain_of(const Tensor& weight, const Tensor& bias);

}  // namespace ballast::ops
