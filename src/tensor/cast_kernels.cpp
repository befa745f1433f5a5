// SPDX-License-Identifier: Apache-2.0
// The plain kernels: one for every dtype into its hub and one for every hub into every dtype.
#include "tensor/cast_kernels.h"

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "tensor/float_formats.h"

namespace ballast {
namespace {

using std::int16_t;
using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

template <class T>
T load(const std::byte* in, std::size_t i) {
  T value;
  std::memcpy(&value, in + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* out, std::size_t i, T value) {
  std::memcpy(out + i * sizeof(T), &value, sizeof(T));
}

template <class From, class To, To (*convert)(From)>
void each(const std::byte* in, std::byte* out, std::size_t count, bool /*stream*/) {
  for (std::size_t i = 0; i < count; ++i) store<To>(out, i, convert(load<From>(in, i)));
}

// Elements of fewer than 8 bits: element i lies in bits [i * kBits, (i + 1) * kBits), the lowest bit of a
// byte first.
template <int kBits>
uint32_t load_code(const std::byte* in, std::size_t i) {
  if constexpr (kBits == 8) return std::to_integer<uint32_t>(in[i]);
  const std::size_t bit = i * kBits;
  auto window = std::to_integer<uint32_t>(in[bit / 8]);
  if (bit % 8 + kBits > 8) window |= std::to_integer<uint32_t>(in[bit / 8 + 1]) << 8U;
  return window >> (bit % 8) & ((1U << kBits) - 1);
}

template <int kBits, float (*decode)(uint32_t)>
constexpr auto make_table() {
  std::array<float, 1U << kBits> table{};
  for (uint32_t code = 0; code < table.size(); ++code) table[code] = decode(code);
  return table;
}

template <int kBits, float (*decode)(uint32_t)>
void widen_codes(const std::byte* in, std::byte* out, std::size_t count, bool /*stream*/) {
  static constexpr auto kTable = make_table<kBits, decode>();
  for (std::size_t i = 0; i < count; ++i) store<float>(out, i, kTable[load_code<kBits>(in, i)]);
}

template <int kBits, uint32_t (*encode)(float)>
void round_codes(const std::byte* in, std::byte* out, std::size_t count, bool /*stream*/) {
  if constexpr (kBits % 8 == 0) {
    using Code = std::conditional_t<kBits == 8, uint8_t, uint16_t>;
    for (std::size_t i = 0; i < count; ++i)
      store<Code>(out, i, static_cast<Code>(encode(load<float>(in, i))));
  } else {
    uint32_t window = 0;
    int filled = 0;
    for (std::size_t i = 0; i < count; ++i) {
      window |= encode(load<float>(in, i)) << filled;
      for (filled += kBits; filled >= 8; filled -= 8, window >>= 8U)
        *out++ = static_cast<std::byte>(window & 0xFFU);
    }
    if (filled > 0) *out = static_cast<std::byte>(window);
  }
}

float one_or_zero(uint8_t value) {
  return value != 0 ? 1.0F : 0.0F;
}

template <class From, class To>
To exactly(From value) {
  return static_cast<To>(value);
}

// Towards zero, then the nearest that fits; NaN is 0.
template <class From, class To>
To saturate(From value) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_integral_v<From>) {
    if (std::cmp_less(value, Limits::min())) return Limits::min();
    if (std::cmp_greater(value, Limits::max())) return Limits::max();
    return static_cast<To>(value);
  } else {
    // 2^digits is the first value that is too large, and is exact in every floating type; so is the smallest.
    constexpr From kEnd = static_cast<From>(uint64_t{1} << (Limits::digits - 1)) * 2;
    if (value != value) return 0;
    if (value >= kEnd) return Limits::max();
    if (value <= static_cast<From>(Limits::min())) return Limits::min();
    return static_cast<To>(value);
  }
}

template <class Hub>
uint8_t nonzero(Hub value) {
  return value != 0;
}

// From f32.
CastKernel small_float_kernel(DType to) noexcept {
  switch (to) {
    case DType::f4:
      return round_codes<4, encode_float<kFormatE2M1>>;
    case DType::f6_e2m3:
      return round_codes<6, encode_float<kFormatE2M3>>;
    case DType::f6_e3m2:
      return round_codes<6, encode_float<kFormatE3M2>>;
    case DType::f8_e5m2:
      return round_codes<8, encode_float<kFormatE5M2>>;
    case DType::f8_e4m3:
      return round_codes<8, encode_float<kFormatE4M3>>;
    case DType::f8_e8m0:
      return round_codes<8, encode_e8m0>;
    case DType::f8_e4m3fnuz:
      return round_codes<8, encode_float<kFormatE4M3Fnuz>>;
    case DType::f8_e5m2fnuz:
      return round_codes<8, encode_float<kFormatE5M2Fnuz>>;
    case DType::f16:
      return round_codes<16, encode_float<kFormatF16>>;
    case DType::bf16:
      return round_codes<16, encode_float<kFormatBF16>>;
    default:
      return nullptr;  // not real
  }
}

template <class Hub>
CastKernel plain_rounding_kernel(DType to) noexcept {
  switch (to) {
    case DType::boolean:
      return each<Hub, uint8_t, nonzero<Hub>>;
    case DType::u8:
      return each<Hub, uint8_t, saturate<Hub, uint8_t>>;
    case DType::u16:
      return each<Hub, uint16_t, saturate<Hub, uint16_t>>;
    case DType::u32:
      return each<Hub, uint32_t, saturate<Hub, uint32_t>>;
    case DType::u64:
      return each<Hub, uint64_t, saturate<Hub, uint64_t>>;
    case DType::i8:
      return each<Hub, int8_t, saturate<Hub, int8_t>>;
    case DType::i16:
      return each<Hub, int16_t, saturate<Hub, int16_t>>;
    case DType::i32:
      return each<Hub, int32_t, saturate<Hub, int32_t>>;
    case DType::i64:
      return each<Hub, int64_t, saturate<Hub, int64_t>>;
    case DType::f32:
      return each<Hub, float, exactly<Hub, float>>;  // the processor rounds once, to nearest even
    case DType::f64:
      return each<Hub, double, exactly<Hub, double>>;
    default:
      return std::is_same_v<Hub, float> ? small_float_kernel(to) : nullptr;
  }
}

float widen_half(uint16_t bits) {
  return decode_float<kFormatF16>(bits);
}

float widen_bfloat16(uint16_t bits) {
  return decode_float<kFormatBF16>(bits);
}

CastKernel plain_widening_kernel(DType from) noexcept {
  switch (from) {
    case DType::boolean:
      return each<uint8_t, float, one_or_zero>;
    case DType::u8:
      return each<uint8_t, float, exactly<uint8_t, float>>;
    case DType::i8:
      return each<int8_t, float, exactly<int8_t, float>>;
    case DType::u16:
      return each<uint16_t, float, exactly<uint16_t, float>>;
    case DType::i16:
      return each<int16_t, float, exactly<int16_t, float>>;
    case DType::u32:
      return each<uint32_t, int64_t, exactly<uint32_t, int64_t>>;
    case DType::i32:
      return each<int32_t, int64_t, exactly<int32_t, int64_t>>;
    case DType::f4:
      return widen_codes<4, decode_float<kFormatE2M1>>;
    case DType::f6_e2m3:
      return widen_codes<6, decode_float<kFormatE2M3>>;
    case DType::f6_e3m2:
      return widen_codes<6, decode_float<kFormatE3M2>>;
    case DType::f8_e5m2:
      return widen_codes<8, decode_float<kFormatE5M2>>;
    case DType::f8_e4m3:
      return widen_codes<8, decode_float<kFormatE4M3>>;
    case DType::f8_e8m0:
      return widen_codes<8, decode_e8m0>;
    case DType::f8_e4m3fnuz:
      return widen_codes<8, decode_float<kFormatE4M3Fnuz>>;
    case DType::f8_e5m2fnuz:
      return widen_codes<8, decode_float<kFormatE5M2Fnuz>>;
    case DType::f16:
      return each<uint16_t, float, widen_half>;
    case DType::bf16:
      return each<uint16_t, float, widen_bfloat16>;
    default:
      return nullptr;  // a hub itself, or not real
  }
}

template <class From>
float odd_of_integer(From value) {
  return round_to_odd(int64_t{value});
}

CastKernel plain_odd_kernel(DType from) noexcept {
  switch (from) {
    case DType::f64:
      return each<double, float, round_to_odd>;
    case DType::i64:
      return each<int64_t, float, round_to_odd>;
    case DType::u64:
      return each<uint64_t, float, round_to_odd>;
    case DType::i32:
      return each<int32_t, float, odd_of_integer<int32_t>>;
    case DType::u32:
      return each<uint32_t, float, odd_of_integer<uint32_t>>;
    default:
      return nullptr;
  }
}

CastKernel vector_kernel(DType from, DType to, Isa isa) noexcept {
  CastKernel found = nullptr;
  if (isa >= Isa::avx512) found = avx512_kernel(from, to);
  if (found == nullptr && isa >= Isa::avx2) found = avx2_kernel(from, to);
  return found;
}

}  // namespace

DType hub_of(DType from) noexcept {
  switch (from) {
    case DType::f64:
    case DType::u64:
    case DType::i64:
      return from;
    case DType::i32:
    case DType::u32:
      return DType::i64;
    default:
      return DType::f32;
  }
}

CastKernel widening_kernel(DType from, Isa isa) noexcept {
  const CastKernel fast = vector_kernel(from, hub_of(from), isa);
  return fast != nullptr ? fast : plain_widening_kernel(from);
}

CastKernel direct_kernel(DType from, DType to, Isa isa) noexcept {
  const DType hub = hub_of(from);
  return hub == from || hub == to ? nullptr : vector_kernel(from, to, isa);
}

CastKernel odd_kernel(DType from, DType to, Isa isa) noexcept {
  CastKernel fast = nullptr;
  if (isa >= Isa::avx512) fast = avx512_odd_kernel(from, to);
  if (fast == nullptr && isa >= Isa::avx2) fast = avx2_odd_kernel(from, to);
  return fast != nullptr ? fast : plain_odd_kernel(from);
}

CastKernel rounding_kernel(DType hub, DType to, Isa isa) noexcept {
  if (hub == to) return nullptr;
  if (const CastKernel fast = vector_kernel(hub, to, isa)) return fast;
  switch (hub) {
    case DType::f64:
      return plain_rounding_kernel<double>(to);
    case DType::i64:
      return plain_rounding_kernel<int64_t>(to);
    case DType::u64:
      return plain_rounding_kernel<uint64_t>(to);
    default:
      return plain_rounding_kernel<float>(to);
  }
}

}  // namespace ballast
