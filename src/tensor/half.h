// SPDX-License-Identifier: Apache-2.0
// One 16-bit floating value at a time, for code that looks at single elements. Whole buffers go through
// cast_elements (cast.h).
#pragma once

#include "ballast/dtype.h"
#include "tensor/float_formats.h"

namespace ballast {

[[nodiscard]] constexpr float float_of(Half value) {
  return decode_float<kFormatF16>(value.bits);
}

[[nodiscard]] constexpr float float_of(BFloat16 value) {
  return decode_float<kFormatBF16>(value.bits);
}

/// Rounded to nearest even; beyond 65504 (after rounding) infinity.
[[nodiscard]] constexpr Half half_of(float value) {
  return {static_cast<std::uint16_t>(encode_float<kFormatF16>(value))};
}

[[nodiscard]] constexpr BFloat16 bfloat16_of(float value) {
  return {static_cast<std::uint16_t>(encode_float<kFormatBF16>(value))};
}

/// Rounded once: not by way of float.
[[nodiscard]] inline Half half_of(double value) {
  return half_of(round_to_odd(value));
}

[[nodiscard]] inline BFloat16 bfloat16_of(double value) {
  return bfloat16_of(round_to_odd(value));
}

}  // namespace ballast
