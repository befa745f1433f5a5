// SPDX-License-Identifier: Apache-2.0
// What the narrow floating formats mean, worked out the slow way and without the library: values by powers of
// two in long double, whose 64 bits hold every value and every half-way point exactly, and rounding by
// looking for the nearest value in a sorted list.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ballast/dtype.h"

namespace ballast::reference {

static_assert(std::numeric_limits<long double>::digits >= 64, "half-way points would not be exact");

enum class Beyond { infinity, nan, largest };

struct Format {
  DType dtype;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Beyond beyond;                     // what lies behind the largest number
  std::uint32_t largest;             // the code of the largest finite number
  std::optional<std::uint32_t> nan;  // the code that NaN must have, if only one
  bool has_negative_zero;
};

// OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0, IEEE 754 binary16, and the FNUZ
// formats of "8-bit Numerical Formats for Deep Neural Networks" (Noune et al.).
inline const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {DType::f16, 5, 10, 15, Beyond::infinity, 0x7BFF, {}, true},
      {DType::bf16, 8, 7, 127, Beyond::infinity, 0x7F7F, {}, true},
      {DType::f8_e5m2, 5, 2, 15, Beyond::infinity, 0x7B, {}, true},
      {DType::f8_e4m3, 4, 3, 7, Beyond::nan, 0x7E, {}, true},
      {DType::f8_e4m3fnuz, 4, 3, 8, Beyond::nan, 0x7F, 0x80, false},
      {DType::f8_e5m2fnuz, 5, 2, 16, Beyond::nan, 0x7F, 0x80, false},
      {DType::f6_e2m3, 2, 3, 1, Beyond::largest, 0x1F, {}, true},
      {DType::f6_e3m2, 3, 2, 3, Beyond::largest, 0x1F, {}, true},
      {DType::f4, 2, 1, 1, Beyond::largest, 0x7, {}, true},
  };
  return all;
}

inline std::uint32_t sign_bit(const Format& format) {
  return 1U << (format.exponent_bits + format.mantissa_bits);
}

// Of a code without its sign, as if every one of them were a number.
inline long double magnitude(const Format& format, std::uint32_t code) {
  const std::uint32_t steps = 1U << format.mantissa_bits;
  const auto field = static_cast<int>(code / steps);
  const auto fraction = static_cast<long double>(code % steps) / steps;
  return field == 0 ? std::ldexp(fraction, 1 - format.bias) : std::ldexp(1 + fraction, field - format.bias);
}

inline long double value(const Format& format, std::uint32_t code) {
  const std::uint32_t plain = code % sign_bit(format);
  const bool negative = code >= sign_bit(format);
  const auto nan = std::numeric_limits<long double>::quiet_NaN();
  if (format.nan && code == *format.nan) return nan;
  if (plain > format.largest) {
    const bool infinite = format.beyond == Beyond::infinity && plain == format.largest + 1;
    return infinite ? (negative ? -1 : 1) * std::numeric_limits<long double>::infinity() : nan;
  }
  const long double size = magnitude(format, plain);
  return negative ? -size : size;
}

// The code of the nearest value, the even one of two equally near. NaN is for the caller.
inline std::uint32_t nearest(const Format& format, long double wanted) {
  const long double size = std::fabs(wanted);
  std::uint32_t low = 0;
  for (std::uint32_t high = format.largest + 1; high - low > 1;) {
    const std::uint32_t middle = (low + high) / 2;
    (magnitude(format, middle) <= size ? low : high) = middle;
  }
  const long double half_way = (magnitude(format, low) + magnitude(format, low + 1)) / 2;
  const std::uint32_t code = size > half_way || (size == half_way && low % 2 == 1) ? low + 1 : low;
  const std::uint32_t sign = std::signbit(wanted) ? sign_bit(format) : 0;
  if (code <= format.largest) return code == 0 && !format.has_negative_zero ? 0 : sign | code;
  switch (format.beyond) {
    case Beyond::infinity:
      return sign | (format.largest + 1);
    case Beyond::nan:
      return format.nan ? *format.nan : sign | (format.largest + 1);
    case Beyond::largest:
      break;
  }
  return sign | format.largest;
}

}  // namespace ballast::reference
