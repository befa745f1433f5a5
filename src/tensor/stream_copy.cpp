// SPDX-License-Identifier: Apache-2.0
#include "tensor/stream_copy.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>

#include "tensor/cast_steps.h"
#endif

namespace ballast {

#if defined(__x86_64__)

namespace {

// A cast that changes nothing.
struct Copy {
  static constexpr std::size_t kIn = 64, kOut = 64, kElement = 1;
  template <bool kStream>
  [[gnu::target("avx")]] static void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    for (; steps > 0; --steps, in += kIn, out += kOut) {
      const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
      const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 32));
      if constexpr (kStream) {
        _mm256_stream_si256(reinterpret_cast<__m256i*>(out), low);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(out + 32), high);
      } else {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), low);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32), high);
      }
    }
    if constexpr (kStream) _mm_sfence();
  }
};

}  // namespace

void stream_copy(Isa isa, const std::byte* in, std::byte* out, std::size_t size) {
  if (isa >= Isa::avx2) convert_by_steps<Copy>(in, out, size, true);
  else std::memcpy(out, in, size);
}

#else

void stream_copy(Isa /*isa*/, const std::byte* in, std::byte* out, std::size_t size) { std::memcpy(out, in, size); }

#endif

}  // namespace ballast
