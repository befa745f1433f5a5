// SPDX-License-Identifier: Apache-2.0
// When packed bytes unfold into so much that they are an attack. Weights are nearly random: no honest file
// shrinks to a two-hundredth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "base/fail.h"

namespace ballast::containers {

inline constexpr std::uint64_t kPlainlyHonest = std::uint64_t{64} << 20U;  // never a bomb
inline constexpr std::uint64_t kMaxExpansion = 200;

/// The most that `packed` bytes may unpack to.
[[nodiscard]] constexpr std::uint64_t expansion_limit(std::uint64_t packed) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / kMaxExpansion;
  return std::max(kPlainlyHonest, std::min(packed, kMost) * kMaxExpansion);
}

/// What the tensors of a file show together, by strides of 0, by many names for one, by many places that
/// point to the same bytes, against the `held` bytes they lie in: no more than 64 MiB and `expansion` times
/// as much (OpenOptions::expansion).
[[nodiscard]] inline bool may_show(std::uint64_t shown, std::uint64_t held, double expansion) {
  return static_cast<double>(shown) <=
         static_cast<double>(kPlainlyHonest) + expansion * static_cast<double>(held);
}

/// Errc::expanded_view otherwise.
inline void require_shown(std::uint64_t shown, std::uint64_t held, double expansion,
                          const std::string& where) {
  if (may_show(shown, held, expansion)) return;
  fail(Errc::expanded_view, where,
       "its tensors show {} bytes, more than 64 MiB and {} times the {} bytes of the file (made large by "
       "strides, zeros or many names? open it with a larger expansion if it is meant to be)",
       shown, expansion, held);
}

}  // namespace ballast::containers
