// SPDX-License-Identifier: Apache-2.0
// How much at a time: sizes that several places go by.
#pragma once

#include <cstddef>

namespace ballast {

/// What passes through a buffer at once. It stays in a core's second cache, and larger writes ask the kernel
/// for larger page-cache folios, which are slow to come by on virtual machines (both measured).
inline constexpr std::size_t kBlockBytes = std::size_t{256} << 10U;

/// What a thread takes at a time of bytes it reads or compares: long runs for a disk, small enough to share
/// the work and to show progress.
inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20U;

/// Outputs larger than this leave the caches of one core anyway, so they are written past them.
inline constexpr std::size_t kBeyondCaches = std::size_t{4} << 20U;

inline constexpr std::size_t kHugePage = std::size_t{2} << 20U;
inline constexpr std::size_t kCacheLine = 64;

}  // namespace ballast
