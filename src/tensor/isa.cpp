// SPDX-License-Identifier: Apache-2.0
#include "tensor/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace ballast {

#if defined(__x86_64__)

namespace {

bool has_f16c() noexcept {  // clang 14 has no name for it
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

Isa detect() noexcept {
  if (!__builtin_cpu_supports("avx2") || !has_f16c()) return Isa::scalar;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return wide ? Isa::avx512 : Isa::avx2;
}

}  // namespace

Isa best_isa() noexcept {
  static const Isa found = detect();  // asking costs a trap on virtual machines
  return found;
}

PlainFloatingPoint::PlainFloatingPoint() noexcept : saved_(_mm_getcsr()) {
  constexpr std::uint32_t kPowerOn = 0x1F80;  // all exceptions masked, nearest, no flushing of denormals
  _mm_setcsr(kPowerOn);
}

PlainFloatingPoint::~PlainFloatingPoint() {
  _mm_setcsr(saved_);
}

#else

Isa best_isa() noexcept {
  return Isa::scalar;
}

PlainFloatingPoint::PlainFloatingPoint() noexcept = default;
PlainFloatingPoint::~PlainFloatingPoint() = default;

#endif

}  // namespace ballast
