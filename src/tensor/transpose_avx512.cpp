// SPDX-License-Identifier: Apache-2.0
// Transposes with AVX-512.
#include "tensor/transpose.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own header: "undefined" vectors, GCC bug 105593.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#define BALLAST_INLINE [[gnu::target("avx512f,avx512bw"), gnu::always_inline]] static inline
#define BALLAST_LOOP [[gnu::target("avx512f,avx512bw")]] static
#define BALLAST_INTRINSIC(name) _mm512_##name

namespace ballast {
namespace {

constexpr int kLanes = 4;
using Vector = __m512i;

BALLAST_INLINE __m128i load_lane(const std::byte* in) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
}

// Lane w holds the row kCount * w further on.
template <std::int64_t kCount>
BALLAST_INLINE Vector load_lanes(const std::byte* in, std::int64_t step) {
  Vector lanes = _mm512_castsi128_si512(load_lane(in));
  lanes = _mm512_inserti32x4(lanes, load_lane(in + kCount * step), 1);
  lanes = _mm512_inserti32x4(lanes, load_lane(in + 2 * kCount * step), 2);
  return _mm512_inserti32x4(lanes, load_lane(in + 3 * kCount * step), 3);
}

BALLAST_INLINE void store(Vector* to, Vector value) {
  _mm512_storeu_si512(to, value);
}

BALLAST_INLINE void store_streamed(Vector* to, Vector value) {
  _mm512_stream_si512(to, value);
}

#include "tensor/transpose_body.inc"

}  // namespace

TransposeKernel avx512_transposer(std::size_t size) noexcept {
  return transposer_of(size);
}

}  // namespace ballast

#else

namespace ballast {

TransposeKernel avx512_transposer(std::size_t /*size*/) noexcept {
  return nullptr;
}

}  // namespace ballast

#endif
