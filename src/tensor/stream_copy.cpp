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

[[gnu::target("avx")]] void write_lines(const std::byte* in, std::byte* out, std::size_t lines) {
  for (; lines > 0; --lines, in += 64, out += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + 32), high);
  }
}

// A cast that changes nothing.
struct Copy {
  static constexpr std::size_t kIn = 64, kOut = 64, kElement = 1;

  template <bool kStream>
  static void convert(const std::byte* in, std::byte* out, std::size_t steps) {
    if constexpr (kStream) {
      write_lines(in, out, steps);
      _mm_sfence();
    } else {
      std::memcpy(out, in, steps * kOut);
    }
  }
};

}  // namespace

void stream_lines(Isa isa, const std::byte* in, std::byte* out, std::size_t lines) {
  if (isa >= Isa::avx2)
    write_lines(in, out, lines);
  else
    std::memcpy(out, in, lines * kCacheLine);
}

void stream_fence() noexcept {
  _mm_sfence();
}

void stream_copy(Isa isa, const std::byte* in, std::byte* out, std::size_t size) {
  if (isa >= Isa::avx2)
    convert_by_steps<Copy>(in, out, size, true);
  else
    std::memcpy(out, in, size);
}

#else

void stream_lines(Isa /*isa*/, const std::byte* in, std::byte* out, std::size_t lines) {
  std::memcpy(out, in, lines * 64);
}

void stream_fence() noexcept {}

void stream_copy(Isa /*isa*/, const std::byte* in, std::byte* out, std::size_t size) {
  std::memcpy(out, in, size);
}

#endif

}  // namespace ballast
