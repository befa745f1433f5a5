// SPDX-License-Identifier: Apache-2.0
// Exponents in three bits: a distance from a base, or 7, an escape, whose exponent follows elsewhere. Bit j
// of the three masks of a group is the code of its element j. For each kind of vector instructions, the same
// bytes from all (docs/formats/packed.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "containers/packed_planes.h"

namespace ballast::packed {

/// Elements of a group: the bits of a mask.
inline constexpr std::size_t kGroup = 64;
inline constexpr std::size_t kGroupBytes = 24;          // three masks
inline constexpr std::size_t kCodes = 7;                // distances; the next code is the escape
inline constexpr std::size_t kMostBase = 256 - kCodes;  // above it a distance would wrap around

[[nodiscard]] constexpr std::size_t groups_of(std::size_t elements) noexcept {
  return (elements + kGroup - 1) / kGroup;
}

struct Base {
  std::uint8_t value = 0;
  std::uint32_t escapes = 0;
};

/// The base that leaves the fewest escapes; of several the lowest.
[[nodiscard]] Base best_base(const Counts& exponents);

/// Masks of whole groups, and the escapes; returns how many. `escapes` has room for kGroup more than there
/// are elements.
std::size_t encode_codes(std::span<const std::byte> exponents, std::uint8_t base, std::byte* masks,
                         std::byte* escapes, Isa isa);

/// And back, for whole groups: `exponents` has room for them, and kGroup bytes may be read behind the
/// escapes. Returns how many escapes were used.
std::size_t decode_codes(const std::byte* masks, std::size_t groups, std::uint8_t base,
                         const std::byte* escapes, std::byte* exponents, Isa isa);

/// How many codes are the escape.
[[nodiscard]] std::size_t count_escapes(const std::byte* masks, std::size_t groups, Isa isa);

}  // namespace ballast::packed
