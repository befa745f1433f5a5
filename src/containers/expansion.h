// SPDX-License-Identifier: Apache-2.0
// When packed bytes unfold into so much that they are an attack. Weights are nearly random: no honest file
// shrinks to a two-hundredth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ballast::containers {

inline constexpr std::uint64_t kPlainlyHonest = std::uint64_t{64} << 20U;  // never a bomb
inline constexpr std::uint64_t kMaxExpansion = 200;

/// The most that `packed` bytes may unpack to.
[[nodiscard]] constexpr std::uint64_t expansion_limit(std::uint64_t packed) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / kMaxExpansion;
  return std::max(kPlainlyHonest, std::min(packed, kMost) * kMaxExpansion);
}

}  // namespace ballast::containers
