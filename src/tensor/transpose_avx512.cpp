// SPDX-License-Identifier: Apache-2.0
// Transposes with AVX-512. A vector's 16-byte lanes each take a small square matrix; interleaving the rows of
// its upper half with those of its lower half, once for every bit of the row's number, transposes it.
#include "tensor/transpose.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own header: "undefined" vectors, GCC bug 105593.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#define BALLAST_AVX512 [[gnu::target("avx512f,avx512bw"), gnu::always_inline]] static inline
#define BALLAST_AVX512_LOOP [[gnu::target("avx512f,avx512bw")]] static

namespace ballast {
namespace {

constexpr int kLanes = 4;
using Vector = __m512i;

BALLAST_AVX512 __m128i load_lane(const std::byte* in) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
}

// Lane w holds the row kCount * w further on.
template <int kCount>
BALLAST_AVX512 Vector load_lanes(const std::byte* in, std::int64_t step) {
  Vector lanes = _mm512_castsi128_si512(load_lane(in));
  lanes = _mm512_inserti32x4(lanes, load_lane(in + kCount * step), 1);
  lanes = _mm512_inserti32x4(lanes, load_lane(in + 2 * kCount * step), 2);
  return _mm512_inserti32x4(lanes, load_lane(in + 3 * kCount * step), 3);
}

template <std::size_t kSize>
BALLAST_AVX512 Vector low_interleaved(Vector a, Vector b) {
  if constexpr (kSize == 1) return _mm512_unpacklo_epi8(a, b);
  if constexpr (kSize == 2) return _mm512_unpacklo_epi16(a, b);
  if constexpr (kSize == 4) return _mm512_unpacklo_epi32(a, b);
  return _mm512_unpacklo_epi64(a, b);
}

template <std::size_t kSize>
BALLAST_AVX512 Vector high_interleaved(Vector a, Vector b) {
  if constexpr (kSize == 1) return _mm512_unpackhi_epi8(a, b);
  if constexpr (kSize == 2) return _mm512_unpackhi_epi16(a, b);
  if constexpr (kSize == 4) return _mm512_unpackhi_epi32(a, b);
  return _mm512_unpackhi_epi64(a, b);
}

// kCount source columns become kCount output rows of one vector each.
template <std::size_t kSize, bool kStream>
BALLAST_AVX512 void transpose_block(const std::byte* in, std::int64_t step, std::byte* out,
                                    std::int64_t pitch) {
  constexpr int kCount = 16 / kSize;
  Vector rows[kCount];
  for (int i = 0; i < kCount; ++i) rows[i] = load_lanes<kCount>(in + i * step, step);
  for (int stage = 1; stage < kCount; stage *= 2) {
    Vector next[kCount];
    for (int i = 0; i < kCount / 2; ++i) {
      next[2 * i] = low_interleaved<kSize>(rows[i], rows[i + kCount / 2]);
      next[2 * i + 1] = high_interleaved<kSize>(rows[i], rows[i + kCount / 2]);
    }
    for (int i = 0; i < kCount; ++i) rows[i] = next[i];
  }
  for (int i = 0; i < kCount; ++i) {
    auto* to = reinterpret_cast<Vector*>(out + i * pitch);
    if constexpr (kStream)
      _mm512_stream_si512(to, rows[i]);
    else
      _mm512_storeu_si512(to, rows[i]);
  }
}

template <std::size_t kSize, bool kStream>
BALLAST_AVX512_LOOP void transpose_tile(const Plane& plane) {
  constexpr std::int64_t kRows = 16 / kSize;
  constexpr std::int64_t kColumns = kRows * kLanes;
  for (std::int64_t i = 0; i < plane.rows; i += kRows) {
    for (std::int64_t j = 0; j < plane.columns; j += kColumns) {
      transpose_block<kSize, kStream>(
          plane.in + i * static_cast<std::int64_t>(kSize) + j * plane.column_step, plane.column_step,
          plane.out + i * plane.pitch + j * static_cast<std::int64_t>(kSize), plane.pitch);
    }
  }
  if constexpr (kStream) _mm_sfence();
}

template <std::size_t kSize>
void transpose(const Plane& plane, bool stream) {
  if (stream)
    transpose_tile<kSize, true>(plane);
  else
    transpose_tile<kSize, false>(plane);
}

}  // namespace

Transposer avx512_transposer(std::size_t size) noexcept {
  switch (size) {
    case 1:
      return {transpose<1>, kLanes};
    case 2:
      return {transpose<2>, kLanes};
    case 4:
      return {transpose<4>, kLanes};
    case 8:
      return {transpose<8>, kLanes};
    case 16:
      return {transpose<16>, kLanes};
    default:
      return {};
  }
}

}  // namespace ballast

#else

namespace ballast {

Transposer avx512_transposer(std::size_t /*size*/) noexcept {
  return {};
}

}  // namespace ballast

#endif
