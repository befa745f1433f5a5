// SPDX-License-Identifier: Apache-2.0
// Transposes with AVX2.
#include "tensor/transpose.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define BALLAST_INLINE [[gnu::target("avx2"), gnu::always_inline]] static inline
#define BALLAST_LOOP [[gnu::target("avx2")]] static
#define BALLAST_INTRINSIC(name) _mm256_##name

namespace ballast {
namespace {

constexpr int kLanes = 2;
using Vector = __m256i;

BALLAST_INLINE __m128i load_lane(const std::byte* in) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
}

// Lane w holds the row kCount * w further on.
template <int kCount>
BALLAST_INLINE Vector load_lanes(const std::byte* in, std::int64_t step) {
  return _mm256_set_m128i(load_lane(in + kCount * step), load_lane(in));
}

BALLAST_INLINE void store(Vector* to, Vector value) {
  _mm256_storeu_si256(to, value);
}

BALLAST_INLINE void store_streamed(Vector* to, Vector value) {
  _mm256_stream_si256(to, value);
}

#include "tensor/transpose_body.inc"

}  // namespace

TransposeKernel avx2_transposer(std::size_t size) noexcept {
  return transposer_of(size);
}

}  // namespace ballast

#else

namespace ballast {

TransposeKernel avx2_transposer(std::size_t /*size*/) noexcept {
  return nullptr;
}

}  // namespace ballast

#endif
