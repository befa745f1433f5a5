// SPDX-License-Identifier: Apache-2.0
// Which vector instructions this machine has, found out at run time. Kernels take it as an argument, so that
// tests can hold every variant the machine can run against the plain one.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

enum class Isa : std::uint8_t {
  scalar,
  avx2,    ///< with F16C
  avx512,  ///< F, BW, VL, DQ
};

/// The best this machine can run.
[[nodiscard]] Isa best_isa() noexcept;

/// Round to nearest even, denormals kept, whatever the calling thread has set; the old state comes back at
/// the end.
class PlainFloatingPoint {
 public:
  PlainFloatingPoint() noexcept;
  PlainFloatingPoint(const PlainFloatingPoint&) = delete;
  PlainFloatingPoint& operator=(const PlainFloatingPoint&) = delete;
  ~PlainFloatingPoint();

 private:
  std::uint32_t saved_ = 0;
};

}  // namespace ballast

#pragma GCC visibility pop
