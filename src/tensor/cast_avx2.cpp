// SPDX-License-Identifier: Apache-2.0
// Casts with AVX2 and F16C; see cast_avx512.cpp on targets.
#include "tensor/cast_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <limits>
#include <type_traits>

#include "tensor/cast_steps.h"

#define BALLAST_AVX2 [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline
#define BALLAST_AVX2_LOOP [[gnu::target("avx2,f16c")]] static
#define BALLAST_INLINE BALLAST_AVX2
#define BALLAST_LOOP BALLAST_AVX2_LOOP

namespace ballast {
namespace {

template <bool kStream>
BALLAST_AVX2 void put(std::byte* out, __m256i value) {
  if constexpr (kStream)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out), value);
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), value);
}

BALLAST_AVX2 __m256i load(const std::byte* in) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
}

BALLAST_AVX2 __m256i to_half(const std::byte* in) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  const __m128i low = _mm256_cvtps_ph(_mm256_castsi256_ps(load(in)), kNearest);
  const __m128i high = _mm256_cvtps_ph(_mm256_castsi256_ps(load(in + 32)), kNearest);
  return _mm256_set_m128i(high, low);
}

// Eight values in the low halves of 32-bit lanes.
BALLAST_AVX2 __m256i rounded_to_bfloat16(__m256i bits) {
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7FFF)), 16);
  const __m256 value = _mm256_castsi256_ps(bits);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), nan);
}

BALLAST_AVX2 __m256i to_bfloat16(const std::byte* in) {
  const __m256i packed =
      _mm256_packus_epi32(rounded_to_bfloat16(load(in)), rounded_to_bfloat16(load(in + 32)));
  return _mm256_permute4x64_epi64(packed, 0xD8);  // packing works inside the two halves
}

BALLAST_AVX2 __m256i from_half(__m128i codes) {
  return _mm256_castps_si256(_mm256_cvtph_ps(codes));
}

BALLAST_AVX2 __m256i from_bfloat16(__m128i codes) {
  return _mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16);
}

template <__m256i (*narrow)(const std::byte*)>
struct Narrow {
  static constexpr std::size_t kIn = 128, kOut = 64, kElement = 2;

  template <bool kStream>
  BALLAST_AVX2_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      put<kStream>(out, narrow(in));
      put<kStream>(out + 32, narrow(in + 64));
    }
    if constexpr (kStream) _mm_sfence();
  }
};

template <__m256i (*widen)(__m128i)>
struct Widen {
  static constexpr std::size_t kIn = 32, kOut = 64, kElement = 4;

  template <bool kStream>
  BALLAST_AVX2_LOOP void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      put<kStream>(out, widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
      put<kStream>(out + 32, widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 16))));
    }
    if constexpr (kStream) _mm_sfence();
  }
};

#include "tensor/cast_loops.inc"

}  // namespace

CastKernel avx2_kernel(DType from, DType to) noexcept {
  if (from == DType::f32 && to == DType::f16) return convert_by_steps<Narrow<to_half>>;
  if (from == DType::f32 && to == DType::bf16) return convert_by_steps<Narrow<to_bfloat16>>;
  if (from == DType::f16 && to == DType::f32) return convert_by_steps<Widen<from_half>>;
  if (from == DType::bf16 && to == DType::f32) return convert_by_steps<Widen<from_bfloat16>>;
  return loop_of(from, to);
}

CastKernel avx2_odd_kernel(DType from, DType to) noexcept {
  return odd_loop(from, to);
}

}  // namespace ballast

#else

namespace ballast {

CastKernel avx2_kernel(DType /*from*/, DType /*to*/) noexcept {
  return nullptr;
}

CastKernel avx2_odd_kernel(DType /*from*/, DType /*to*/) noexcept {
  return nullptr;
}

}  // namespace ballast

#endif
