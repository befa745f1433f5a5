// SPDX-License-Identifier: Apache-2.0
// Casts with AVX-512. Functions carry their target themselves: the file is compiled for the plain machine
// like any other, and no inline function of a header can come out of it in a form that only newer processors
// run.
#include "tensor/cast_kernels.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own header: "undefined" vectors, GCC bug 105593.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <limits>
#include <type_traits>

#include "tensor/cast_steps.h"
#include "tensor/float_formats.h"

#define BALLAST_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq"), gnu::always_inline]] static inline
#define BALLAST_AVX512_LOOP [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] static
#define BALLAST_INLINE BALLAST_AVX512
#define BALLAST_LOOP BALLAST_AVX512_LOOP

namespace ballast {
namespace {

template <bool kStream>
BALLAST_AVX512 void put(std::byte* out, __m512i value) {
  if constexpr (kStream)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(out), value);
  else
    _mm512_storeu_si512(out, value);
}

BALLAST_AVX512 __m512i joined(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

BALLAST_AVX512 __m256i half_of(__m512i bits) {
  return _mm512_cvtps_ph(_mm512_castsi512_ps(bits), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

BALLAST_AVX512 __m256i to_half(const std::byte* in) {
  return half_of(_mm512_loadu_si512(in));
}

// To nearest even on the integers, the result in the upper halves: the processor's own instruction for it
// flushes denormals.
BALLAST_AVX512 __m512i rounded_to_bfloat16(const std::byte* in) {
  const __m512i bits = _mm512_loadu_si512(in);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __mmask16 nan =
      _mm512_cmp_ps_mask(_mm512_castsi512_ps(bits), _mm512_castsi512_ps(bits), _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x0040'0000));
}

BALLAST_AVX512 __m512i to_halves(const std::byte* in) {
  return joined(to_half(in), to_half(in + 64));
}

BALLAST_AVX512 __m512i upper_halves(__m512i low, __m512i high) {
  const __m512i odd = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29,
                                       27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi16(low, odd, high);
}

BALLAST_AVX512 __m512i to_bfloat16s(const std::byte* in) {
  return upper_halves(rounded_to_bfloat16(in), rounded_to_bfloat16(in + 64));
}

BALLAST_AVX512 __m512i from_half(__m256i codes) {
  return _mm512_castps_si512(_mm512_cvtph_ps(codes));
}

BALLAST_AVX512 __m512i from_bfloat16(__m256i codes) {
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16);
}

template <__m512i (*narrow)(const std::byte*)>
struct Narrow {
  static constexpr std::size_t kIn = 128, kOut = 64, kElement = 2;

  template <bool kStream>
  BALLAST_AVX512_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) put<kStream>(out, narrow(in));
    if constexpr (kStream) _mm_sfence();
  }
};

template <__m512i (*widen)(__m256i)>
struct Widen {
  static constexpr std::size_t kIn = 64, kOut = 128, kElement = 4;

  template <bool kStream>
  BALLAST_AVX512_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      put<kStream>(out, widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in))));
      put<kStream>(out + 64, widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 32))));
    }
    if constexpr (kStream) _mm_sfence();
  }
};

struct SingleToDouble {
  static constexpr std::size_t kIn = 32, kOut = 64, kElement = 8;

  template <bool kStream>
  BALLAST_AVX512_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      put<kStream>(out,
                   _mm512_castpd_si512(_mm512_cvtps_pd(_mm256_loadu_ps(reinterpret_cast<const float*>(in)))));
    }
    if constexpr (kStream) _mm_sfence();
  }
};

struct DoubleToSingle {
  static constexpr std::size_t kIn = 128, kOut = 64, kElement = 4;

  template <bool kStream>
  BALLAST_AVX512_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      const __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(in));
      const __m256 high = _mm512_cvtpd_ps(_mm512_loadu_pd(in + 64));
      put<kStream>(out, joined(_mm256_castps_si256(low), _mm256_castps_si256(high)));
    }
    if constexpr (kStream) _mm_sfence();
  }
};

// Sixteen 8-bit codes. Shifted under f16's sign they are f16 values, off by a power of two; f16's conversion
// then deals with denormals.
template <FloatFormat F>
BALLAST_AVX512 __m512i from_code8(__m128i codes) {
  constexpr bool kSameAsHalf = F.exponent_bits == 5;
  const __m256i wide = _mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 8);
  const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7FFF));
  const __m256i sign = _mm256_andnot_si256(_mm256_set1_epi16(0x7FFF), wide);
  const __m256i half = kSameAsHalf ? wide : _mm256_or_si256(sign, _mm256_srli_epi16(magnitude, 1));
  const __m512 value =
      _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(static_cast<float>(1 << (15 - F.bias))));
  if constexpr (F.specials == Specials::ieee) return _mm512_castps_si512(value);
  const __m128i nan_code =
      _mm_set1_epi8(F.specials == Specials::nan_all_ones ? 0x7F : static_cast<char>(0x80));
  const __m128i asked =
      F.specials == Specials::nan_all_ones ? _mm_and_si128(codes, _mm_set1_epi8(0x7F)) : codes;
  const __mmask16 nan = _mm_cmpeq_epi8_mask(asked, nan_code);
  return _mm512_mask_or_epi32(_mm512_castps_si512(value), nan, _mm512_castps_si512(value),
                              _mm512_set1_epi32(0x7FC00000));
}

template <FloatFormat F>
struct WidenCode8 {
  static constexpr std::size_t kIn = 16, kOut = 64, kElement = 4;

  template <bool kStream>
  BALLAST_AVX512_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      put<kStream>(out, from_code8<F>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
    }
    if constexpr (kStream) _mm_sfence();
  }
};

// All values of these codes are BF16's and F16's, too: nothing is rounded.
template <FloatFormat F, bool kBfloat>
struct Code8To16 {
  static constexpr std::size_t kIn = 32, kOut = 64, kElement = 2;

  template <bool kStream>
  BALLAST_AVX512_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      const __m512i low = from_code8<F>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
      const __m512i high = from_code8<F>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 16)));
      if constexpr (kBfloat)
        put<kStream>(out, upper_halves(low, high));
      else
        put<kStream>(out, joined(half_of(low), half_of(high)));
    }
    if constexpr (kStream) _mm_sfence();
  }
};

template <FloatFormat F>
CastKernel code8_to_16(DType to) noexcept {
  if (to == DType::bf16) return convert_by_steps<Code8To16<F, true>>;
  return to == DType::f16 ? convert_by_steps<Code8To16<F, false>> : nullptr;
}

// encode_float() for sixteen values. Denormals are rounded by an addition that moves their last bit to the
// float's last.
template <FloatFormat F>
BALLAST_AVX512 __m128i to_code8(const std::byte* in) {
  constexpr int kShift = 23 - F.mantissa_bits;
  constexpr int kRebias = (127 - F.bias) << 23;
  const __m512i bits = _mm512_loadu_si512(in);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(magnitude, kShift), _mm512_set1_epi32(1));
  const __m512i half = _mm512_set1_epi32((1 << (kShift - 1)) - 1 - kRebias);
  __m512i code = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(magnitude, odd), half), kShift);
  const __m512i magic = _mm512_set1_epi32((128 - F.bias + kShift) << 23);
  const __m512 moved = _mm512_add_ps(_mm512_castsi512_ps(magnitude), _mm512_castsi512_ps(magic));
  const __mmask16 small = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32((128 - F.bias) << 23));
  code = _mm512_mask_sub_epi32(code, small, _mm512_castps_si512(moved), magic);
  const __mmask16 beyond =
      _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(kF32Infinity - 1)) |
      _mm512_cmpgt_epi32_mask(code, _mm512_set1_epi32(static_cast<int>(F.largest_finite())));
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(kF32Infinity));
  const __m512i sign = _mm512_slli_epi32(_mm512_srli_epi32(bits, 31), 7);
  if constexpr (F.specials == Specials::nan_negative_zero) {
    code = _mm512_mask_or_epi32(code, _mm512_test_epi32_mask(code, code), code, sign);
    code = _mm512_mask_mov_epi32(code, beyond, _mm512_set1_epi32(0x80));
  } else {
    constexpr int kBeyond = F.specials == Specials::ieee ? static_cast<int>(F.exponent_mask()) : 0x7F;
    code = _mm512_mask_mov_epi32(code, beyond, _mm512_set1_epi32(kBeyond));
    code = _mm512_or_si512(_mm512_mask_mov_epi32(code, nan, _mm512_set1_epi32(0x7F)), sign);
  }
  return _mm512_cvtepi32_epi8(code);
}

template <FloatFormat F>
struct NarrowCode8 {
  static constexpr std::size_t kIn = 256, kOut = 64, kElement = 1;

  template <bool kStream>
  BALLAST_AVX512_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      const __m256i low = _mm256_set_m128i(to_code8<F>(in + 64), to_code8<F>(in));
      const __m256i high = _mm256_set_m128i(to_code8<F>(in + 192), to_code8<F>(in + 128));
      put<kStream>(out, joined(low, high));
    }
    if constexpr (kStream) _mm_sfence();
  }
};

CastKernel from_single(DType to) noexcept {
  switch (to) {
    case DType::f16:
      return convert_by_steps<Narrow<to_halves>>;
    case DType::bf16:
      return convert_by_steps<Narrow<to_bfloat16s>>;
    case DType::f64:
      return convert_by_steps<SingleToDouble>;
    case DType::f8_e5m2:
      return convert_by_steps<NarrowCode8<kFormatE5M2>>;
    case DType::f8_e4m3:
      return convert_by_steps<NarrowCode8<kFormatE4M3>>;
    case DType::f8_e4m3fnuz:
      return convert_by_steps<NarrowCode8<kFormatE4M3Fnuz>>;
    case DType::f8_e5m2fnuz:
      return convert_by_steps<NarrowCode8<kFormatE5M2Fnuz>>;
    default:
      return nullptr;
  }
}

CastKernel to_single(DType from) noexcept {
  switch (from) {
    case DType::f16:
      return convert_by_steps<Widen<from_half>>;
    case DType::bf16:
      return convert_by_steps<Widen<from_bfloat16>>;
    case DType::f64:
      return convert_by_steps<DoubleToSingle>;
    case DType::f8_e5m2:
      return convert_by_steps<WidenCode8<kFormatE5M2>>;
    case DType::f8_e4m3:
      return convert_by_steps<WidenCode8<kFormatE4M3>>;
    case DType::f8_e4m3fnuz:
      return convert_by_steps<WidenCode8<kFormatE4M3Fnuz>>;
    default:
      return nullptr;
  }
}

CastKernel between_small_floats(DType from, DType to) noexcept {
  switch (from) {
    case DType::f8_e5m2:
      return code8_to_16<kFormatE5M2>(to);
    case DType::f8_e4m3:
      return code8_to_16<kFormatE4M3>(to);
    case DType::f8_e4m3fnuz:
      return code8_to_16<kFormatE4M3Fnuz>(to);
    default:
      return nullptr;
  }
}

#include "tensor/cast_loops.inc"

}  // namespace

CastKernel avx512_kernel(DType from, DType to) noexcept {
  CastKernel found = nullptr;
  if (from == DType::f32)
    found = from_single(to);
  else if (to == DType::f32)
    found = to_single(from);
  else
    found = between_small_floats(from, to);
  return found != nullptr ? found : loop_of(from, to);
}

CastKernel avx512_odd_kernel(DType from, DType to) noexcept {
  return odd_loop(from, to);
}

}  // namespace ballast

#else

namespace ballast {

CastKernel avx512_kernel(DType /*from*/, DType /*to*/) noexcept {
  return nullptr;
}

CastKernel avx512_odd_kernel(DType /*from*/, DType /*to*/) noexcept {
  return nullptr;
}

}  // namespace ballast

#endif
