// SPDX-License-Identifier: Apache-2.0
// What the vector kernels share: a kernel converts whole steps of its elements; this deals with everything
// around them. Not compiled for any particular instruction set, so that nothing of it can end up where it
// must not run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/sizes.h"

namespace ballast {

/// A Step has: kIn and kOut, bytes in and out of one step, kElement, bytes of an output element, and
/// convert<bool stream>(in, out, steps), which may only write past the cache (stream) from a cache line's
/// start. kOut is a whole number of cache lines.
template <class Step>
void convert_by_steps(const std::byte* in, std::byte* out, std::size_t count, bool stream) {
  constexpr std::size_t kCount = Step::kOut / Step::kElement;
  constexpr std::size_t kInElement = Step::kIn / kCount;
  const auto few = [&](std::size_t elements) {  // fewer than a step: through a buffer of a whole one
    alignas(kCacheLine) std::byte from[Step::kIn] = {};
    alignas(kCacheLine) std::byte to[Step::kOut];
    std::memcpy(from, in, elements * kInElement);
    Step::template convert<false>(from, to, 1);
    std::memcpy(out, to, elements * Step::kElement);
    in += elements * kInElement;
    out += elements * Step::kElement;
    count -= elements;
  };
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(out) % kCacheLine;
  stream = stream && misaligned % Step::kElement == 0 && count > 2 * kCount;
  if (stream && misaligned != 0) few((kCacheLine - misaligned) / Step::kElement);
  const std::size_t steps = count / kCount;
  if (stream)
    Step::template convert<true>(in, out, steps);
  else
    Step::template convert<false>(in, out, steps);
  in += steps * Step::kIn;
  out += steps * Step::kOut;
  count -= steps * kCount;
  if (count > 0) few(count);
}

}  // namespace ballast
