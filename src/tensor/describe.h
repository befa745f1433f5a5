// SPDX-License-Identifier: Apache-2.0
// A tensor's form: its name in messages, its size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ballast/dtype.h"
#include "ballast/shape.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// "tensor F32 [2, 3]": the place in messages.
[[nodiscard]] std::string describe(DType dtype, ShapeView shape);

/// Bytes of so many elements, a last one that is begun counted whole. For numbers that were checked.
[[nodiscard]] inline std::uint64_t bytes_of(DType dtype, std::uint64_t count) noexcept {
  return (count * info(dtype).bits + 7) / 8;
}

/// Bits of all elements of `shape`; nullopt when 64 bits cannot count them, or a dimension is negative. The
/// one place that knows when a size is too large.
[[nodiscard]] std::optional<std::uint64_t> try_bits(DType dtype, ShapeView shape) noexcept;

/// Elements of `shape`; throws unless they, and their bits, can be counted in 63 bits.
[[nodiscard]] std::int64_t checked_numel(DType dtype, ShapeView shape);

}  // namespace ballast

#pragma GCC visibility pop
