// SPDX-License-Identifier: Apache-2.0
// Transposes with AVX2. A vector's 16-byte lanes each take a small square matrix; interleaving the rows of
// its upper half with those of its lower half, once for every bit of the row's number, transposes it.
#include "tensor/transpose.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define BALLAST_AVX2 [[gnu::target("avx2"), gnu::always_inline]] static inline
#define BALLAST_AVX2_LOOP [[gnu::target("avx2")]] static

namespace ballast {
namespace {

constexpr int kLanes = 2;
using Vector = __m256i;

BALLAST_AVX2 __m128i load_lane(const std::byte* in) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
}

// Lane w holds the row kCount * w further on.
template <int kCount>
BALLAST_AVX2 Vector load_lanes(const std::byte* in, std::int64_t step) {
  return _mm256_set_m128i(load_lane(in + kCount * step), load_lane(in));
}

template <std::size_t kSize>
BALLAST_AVX2 Vector low_interleaved(Vector a, Vector b) {
  if constexpr (kSize == 1) return _mm256_unpacklo_epi8(a, b);
  if constexpr (kSize == 2) return _mm256_unpacklo_epi16(a, b);
  if constexpr (kSize == 4) return _mm256_unpacklo_epi32(a, b);
  return _mm256_unpacklo_epi64(a, b);
}

template <std::size_t kSize>
BALLAST_AVX2 Vector high_interleaved(Vector a, Vector b) {
  if constexpr (kSize == 1) return _mm256_unpackhi_epi8(a, b);
  if constexpr (kSize == 2) return _mm256_unpackhi_epi16(a, b);
  if constexpr (kSize == 4) return _mm256_unpackhi_epi32(a, b);
  return _mm256_unpackhi_epi64(a, b);
}

// kCount source columns become kCount output rows of one vector each.
template <std::size_t kSize, bool kStream>
BALLAST_AVX2 void transpose_block(const std::byte* in, std::int64_t step, std::byte* out,
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
      _mm256_stream_si256(to, rows[i]);
    else
      _mm256_storeu_si256(to, rows[i]);
  }
}

template <std::size_t kSize, bool kStream>
BALLAST_AVX2_LOOP void transpose_tile(const Plane& plane) {
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

Transposer avx2_transposer(std::size_t size) noexcept {
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

Transposer avx2_transposer(std::size_t /*size*/) noexcept {
  return {};
}

}  // namespace ballast

#endif
