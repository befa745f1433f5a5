// SPDX-License-Identifier: Apache-2.0
// The parts casts are put together from. A source is first widened to a hub, a type that holds each of its
// values exactly (f32, f64, i64 or u64); the hub's values are then rounded to the target. Two small sets of
// kernels make every pair. Small floats are only rounded to from f32: what comes from another hub is first
// made an f32 with enough of it left (odd_kernel).
#pragma once

#include <cstddef>

#include "ballast/dtype.h"
#include "tensor/isa.h"

namespace ballast {

/// Converts `count` elements between unaligned buffers. `stream`: the output is large and not read soon, keep
/// it out of the cache.
using CastKernel = void (*)(const std::byte* in, std::byte* out, std::size_t count, bool stream);

/// f32, f64, i64 or u64: the type that holds every value of `from`.
[[nodiscard]] DType hub_of(DType from) noexcept;

/// From `from` to hub_of(from); null when it is its own hub.
[[nodiscard]] CastKernel widening_kernel(DType from, Isa isa) noexcept;
/// From a hub to `to`; null when they are the same.
[[nodiscard]] CastKernel rounding_kernel(DType hub, DType to, Isa isa) noexcept;
/// From `from` to `to` without a hub between them; null for most pairs.
[[nodiscard]] CastKernel direct_kernel(DType from, DType to, Isa isa) noexcept;
/// From a dtype whose hub is not f32 to f32, rounded to odd (or another way, where `to` allows it): enough to
/// round it again, once, to a float of 16 bits or fewer.
[[nodiscard]] CastKernel odd_kernel(DType from, DType to, Isa isa) noexcept;

/// Whether 2^20 and all beyond it are the same to a float of 16 bits or fewer.
[[nodiscard]] constexpr bool ends_below_2_to_20(DType to) noexcept {
  return to != DType::bf16 && to != DType::f8_e8m0;
}

// What the vector files have; null for pairs they have nothing for.
[[nodiscard]] CastKernel avx2_kernel(DType from, DType to) noexcept;
[[nodiscard]] CastKernel avx512_kernel(DType from, DType to) noexcept;
[[nodiscard]] CastKernel avx2_odd_kernel(DType from, DType to) noexcept;
[[nodiscard]] CastKernel avx512_odd_kernel(DType from, DType to) noexcept;

}  // namespace ballast
