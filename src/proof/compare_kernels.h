// SPDX-License-Identifier: Apache-2.0
// The loops of diff over values, for each kind of vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/isa.h"

namespace ballast {

struct Comparison {
  double max_abs = 0;  // infinite where one side is not finite
  double max_rel = 0;
  double ab = 0;  // of finite pairs: sums of products
  double aa = 0;
  double bb = 0;
  double dd = 0;  // and of the squares of their differences
  std::uint64_t differing = 0;
  std::uint64_t outside = 0;  // of tolerance + relative * the larger of the two
  bool odd = false;           // some pair is not finite
};

struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

[[nodiscard]] Comparison compare_values(const double* a, const double* b, std::size_t count,
                                        Tolerance tolerance, Isa isa);

/// The sum of squares of the finite ones.
[[nodiscard]] double squares(const double* values, std::size_t count, Isa isa);

[[nodiscard]] bool has_nan(const double* values, std::size_t count, Isa isa);

/// The most steps from one representable number to the other, over pairs of finite ones; 0 and -0 are one.
/// Integers of the floating-point numbers' size, and the bits of the exponent.
template <class Signed>
[[nodiscard]] std::uint64_t most_ulps(const std::byte* a, const std::byte* b, std::size_t count,
                                      Signed exponent, Isa isa);

}  // namespace ballast
