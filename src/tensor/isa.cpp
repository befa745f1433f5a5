// SPDX-License-Identifier: Apache-2.0
#include "tensor/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ballast {

#if defined(__x86_64__)

Isa best_isa() noexcept {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c")) return Isa::scalar;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return wide ? Isa::avx512 : Isa::avx2;
}

PlainFloatingPoint::PlainFloatingPoint() noexcept : saved_(_mm_getcsr()) {
  constexpr std::uint32_t kPowerOn = 0x1F80;  // all exceptions masked, nearest, no flushing of denormals
  _mm_setcsr(kPowerOn);
}

PlainFloatingPoint::~PlainFloatingPoint() { _mm_setcsr(saved_); }

#else

Isa best_isa() noexcept { return Isa::scalar; }
PlainFloatingPoint::PlainFloatingPoint() noexcept = default;
PlainFloatingPoint::~PlainFloatingPoint() = default;

#endif

}  // namespace ballast
