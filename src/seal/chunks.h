// SPDX-License-Identifier: Apache-2.0
// Where the payload of an age file lies: a nonce, then chunks of 64 KiB, each with a tag of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "seal/primitives.h"

namespace ballast::seal {

inline constexpr std::size_t kChunkBytes = 65536;
inline constexpr std::size_t kSealedChunkBytes = kChunkBytes + kTagBytes;
inline constexpr std::size_t kPayloadNonceBytes = 16;

/// Of a plain text of some size, whose first chunk lies at `start` of the file.
struct Chunks {
  std::uint64_t start = 0;
  std::uint64_t size = 0;

  /// One at least: nothing is an empty chunk.
  [[nodiscard]] std::uint64_t count() const noexcept {
    return std::max<std::uint64_t>((size + kChunkBytes - 1) / kChunkBytes, 1);
  }

  [[nodiscard]] std::uint64_t last() const noexcept { return count() - 1; }

  [[nodiscard]] std::size_t plain_bytes(std::uint64_t index) const noexcept {
    return static_cast<std::size_t>(std::min<std::uint64_t>(size - index * kChunkBytes, kChunkBytes));
  }

  [[nodiscard]] std::uint64_t offset(std::uint64_t index) const noexcept {
    return start + index * kSealedChunkBytes;
  }

  [[nodiscard]] std::uint64_t end() const noexcept { return start + size + count() * kTagBytes; }
};

/// Eleven bytes that count, and one that says whether it is the last.
[[nodiscard]] inline Nonce chunk_nonce(std::uint64_t index, bool is_last) noexcept {
  Nonce nonce{};
  for (std::size_t i = 0; i < 8; ++i) nonce[10 - i] = static_cast<std::byte>(index >> 8 * i & 0xFFU);
  nonce[11] = std::byte{is_last};
  return nonce;
}

}  // namespace ballast::seal
