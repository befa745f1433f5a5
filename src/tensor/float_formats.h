// SPDX-License-Identifier: Apache-2.0
// The floating formats of 16 bits and fewer, described by their layout: every one of their values is a float
// exactly, and a float becomes one of them by one rounding to nearest even. Written for being right; the fast
// paths are held against it.
#pragma once

#include <bit>
#include <cstdint>

namespace ballast {

/// What the codes beyond the ordinary numbers mean.
enum class Specials : std::uint8_t {
  ieee,               ///< the largest exponent holds infinity and NaN
  nan_all_ones,       ///< "fn": no infinity; all bits set is NaN
  nan_negative_zero,  ///< "fnuz": no infinity, no negative zero; its code is NaN
  none,               ///< every code is a number
};

/// sign, exponent, mantissa, from the highest bit down. Exponent field 0 holds zero and the denormals.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  [[nodiscard]] constexpr std::uint32_t sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }

  [[nodiscard]] constexpr std::uint32_t exponent_mask() const { return sign_bit() - (1U << mantissa_bits); }

  [[nodiscard]] constexpr std::uint32_t largest_finite() const {
    switch (specials) {
      case Specials::ieee:
        return exponent_mask() - 1;
      case Specials::nan_all_ones:
        return sign_bit() - 2;
      case Specials::nan_negative_zero:
      case Specials::none:
        break;
    }
    return sign_bit() - 1;
  }
};

inline constexpr FloatFormat kFormatF16{5, 10, 15, Specials::ieee};
inline constexpr FloatFormat kFormatBF16{8, 7, 127, Specials::ieee};
inline constexpr FloatFormat kFormatE5M2{5, 2, 15, Specials::ieee};
inline constexpr FloatFormat kFormatE4M3{4, 3, 7, Specials::nan_all_ones};
inline constexpr FloatFormat kFormatE5M2Fnuz{5, 2, 16, Specials::nan_negative_zero};
inline constexpr FloatFormat kFormatE4M3Fnuz{4, 3, 8, Specials::nan_negative_zero};
inline constexpr FloatFormat kFormatE2M3{2, 3, 1, Specials::none};
inline constexpr FloatFormat kFormatE3M2{3, 2, 3, Specials::none};
inline constexpr FloatFormat kFormatE2M1{2, 1, 1, Specials::none};

inline constexpr std::uint32_t kF32Sign = 0x8000'0000U;
inline constexpr std::uint32_t kF32Infinity = 0x7F80'0000U;
inline constexpr std::uint32_t kF32QuietNaN = 0x7FC0'0000U;

/// The value of `code`.
template <FloatFormat F>
[[nodiscard]] constexpr float decode_float(std::uint32_t code) {
  const std::uint32_t sign = (code & F.sign_bit()) != 0 ? kF32Sign : 0;
  const std::uint32_t magnitude = code & (F.sign_bit() - 1);
  constexpr int kShift = 23 - F.mantissa_bits;
  if constexpr (F.bias == 127)
    return std::bit_cast<float>(sign | magnitude << kShift);  // bf16 is the upper half of f32
  if constexpr (F.specials == Specials::nan_negative_zero) {
    if (code == F.sign_bit()) return std::bit_cast<float>(kF32QuietNaN);
  }
  if constexpr (F.specials == Specials::nan_all_ones) {
    if (magnitude == F.sign_bit() - 1) return std::bit_cast<float>(sign | kF32QuietNaN);
  }
  if constexpr (F.specials == Specials::ieee) {
    if (magnitude == F.exponent_mask()) return std::bit_cast<float>(sign | kF32Infinity);
    if (magnitude > F.exponent_mask()) return std::bit_cast<float>(sign | kF32QuietNaN | magnitude << kShift);
  }
  if ((magnitude >> F.mantissa_bits) == 0) {
    constexpr auto kQuantum =
        std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - F.bias - F.mantissa_bits) << 23U);
    const float value = static_cast<float>(magnitude) * kQuantum;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - F.bias) << 23U;
  return std::bit_cast<float>(sign | ((magnitude << kShift) + kRebias));
}

/// `significand` / 2^shift, rounded to nearest even.
[[nodiscard]] constexpr std::uint32_t shift_to_even(std::uint32_t significand, int shift) {
  if (shift > 31) return 0;
  const std::uint32_t quotient = significand >> shift;
  const std::uint32_t rest = significand & ((1U << shift) - 1);
  const std::uint32_t half = 1U << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1U) != 0) ? 1U : 0U);
}

/// `value` rounded to nearest even. Beyond the largest number: infinity where the format has it, else NaN
/// where it has that, else the largest number. NaN in a format without one: the largest positive number, as
/// the conversion instructions of GPUs do.
template <FloatFormat F>
[[nodiscard]] constexpr std::uint32_t encode_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & ~kF32Sign;
  const std::uint32_t sign = (bits & kF32Sign) != 0 ? F.sign_bit() : 0;
  constexpr int kShift = 23 - F.mantissa_bits;
  if (magnitude > kF32Infinity) {
    switch (F.specials) {
      case Specials::ieee:
        // Eight bits are too few for a payload: PyTorch sets them all.
        if constexpr (F.mantissa_bits < 7) return sign | (F.sign_bit() - 1);
        return sign | F.exponent_mask() | 1U << (F.mantissa_bits - 1) |
               (magnitude >> kShift & (F.sign_bit() - 1));
      case Specials::nan_all_ones:
        return sign | (F.sign_bit() - 1);
      case Specials::nan_negative_zero:
        return F.sign_bit();
      case Specials::none:
        return F.largest_finite();
    }
  }
  const int exponent = static_cast<int>(magnitude >> 23U);  // biased by 127
  constexpr int kSmallestNormal = 128 - F.bias;
  std::uint32_t code = 0;
  if (F.bias == 127 || exponent >= kSmallestNormal) {
    code = shift_to_even(magnitude - (static_cast<std::uint32_t>(127 - F.bias) << 23U), kShift);
  } else {
    const std::uint32_t significand = (magnitude & 0x7F'FFFFU) | (exponent == 0 ? 0U : 0x80'0000U);
    code = shift_to_even(significand, kShift + kSmallestNormal - (exponent == 0 ? 1 : exponent));
  }
  if (code > F.largest_finite() || magnitude == kF32Infinity) {
    switch (F.specials) {
      case Specials::ieee:
        return sign | F.exponent_mask();
      case Specials::nan_all_ones:
        return sign | (F.sign_bit() - 1);
      case Specials::nan_negative_zero:
        return F.sign_bit();
      case Specials::none:
        return sign | F.largest_finite();
    }
  }
  if (F.specials == Specials::nan_negative_zero && code == 0) return 0;
  return sign | code;
}

/// E8M0, a scale: 2^(code - 127), and 255 is NaN.
[[nodiscard]] constexpr float decode_e8m0(std::uint32_t code) {
  if (code == 255) return std::bit_cast<float>(kF32QuietNaN);
  return std::bit_cast<float>(code == 0 ? 0x0040'0000U : code << 23U);
}

/// PyTorch's rule: the sign is dropped, half way goes up, zero becomes the smallest scale, what lies between
/// the two smallest scales becomes the larger, infinity and overflow become NaN.
[[nodiscard]] constexpr std::uint32_t encode_e8m0(float value) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & ~kF32Sign;
  const std::uint32_t exponent = magnitude >> 23U;
  const std::uint32_t fraction = magnitude & 0x7F'FFFFU;
  if (exponent == 255) return 255;
  const bool up = exponent == 0 ? fraction > 0x40'0000U : fraction >= 0x40'0000U;
  return exponent + (up ? 1U : 0U);
}

/// The next float towards zero with its last bit set, unless `value` is a float: keeps enough of `value` to
/// round it again, once, to any format of 16 bits and fewer. Needs the usual rounding mode.
[[nodiscard]] inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || value != value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const double distance = value < 0 ? -value : value;
  if ((back < 0 ? -back : back) > distance) --bits;  // also from infinity back to the largest float
  return std::bit_cast<float>(bits | 1U);
}

[[nodiscard]] inline float round_to_odd(std::uint64_t value) {
  const int width = static_cast<int>(std::bit_width(value));
  if (width <= 24) return static_cast<float>(value);
  const int shift = width - 24;
  const std::uint64_t rest = value & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t kept = (value >> shift) | (rest != 0 ? 1U : 0U);
  return static_cast<float>(kept) * static_cast<float>(std::uint64_t{1} << shift);
}

[[nodiscard]] inline float round_to_odd(std::int64_t value) {
  return value < 0 ? -round_to_odd(std::uint64_t{0} - static_cast<std::uint64_t>(value))
                   : round_to_odd(static_cast<std::uint64_t>(value));
}

}  // namespace ballast
