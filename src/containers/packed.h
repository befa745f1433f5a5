// SPDX-License-Identifier: Apache-2.0
// A packed tensor as it lies in a file: a head, the sizes of its blocks, the blocks (docs/formats/packed.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ballast/dtype.h"
#include "ballast/storage.h"
#include "containers/packed_block.h"

namespace ballast::packed {

inline constexpr std::size_t kBlobHead = 16;
inline constexpr unsigned kLeastLog2 = 12;  // elements of a block
inline constexpr unsigned kMostLog2 = 20;
inline constexpr std::size_t kBlockAlignment = 16;

/// Of the blocks that are written: 256 KiB of elements, which is what readers take at a time.
[[nodiscard]] constexpr unsigned written_log2(Split how) noexcept {
  return how == Split::bytes ? 18 : how == Split::f32 ? 16 : 17;
}

[[nodiscard]] constexpr std::uint64_t padded_block(std::uint64_t size) noexcept {
  return (size + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

/// Where the first of so many blocks begins.
[[nodiscard]] constexpr std::uint64_t first_block(std::uint64_t blocks) noexcept {
  return (kBlobHead + 4 * blocks + 63) / 64 * 64;
}

/// What stands before the blocks, with written_log2().
[[nodiscard]] std::vector<std::byte> blob_head(Split how, std::uint64_t elements,
                                               std::span<const std::uint32_t> block_sizes);

/// What the file says of a packed tensor.
struct Said {
  std::string file;  ///< for messages
  std::string name;
  Split how = Split::bytes;
  std::uint64_t bytes = 0;  ///< unpacked
  std::uint64_t xxh3 = 0;   ///< of them
  bool writable = false;    ///< they may be written to, and from then on have no checksum
};

/// The unpacked bytes of `stored`. The head is read when the first of them is asked for; read() unpacks the
/// blocks it needs and keeps nothing. Errc::bad_packed; check_sound() also compares the checksum.
[[nodiscard]] std::shared_ptr<const Storage> unpacked_storage(std::shared_ptr<const Storage> stored,
                                                              Said said);

}  // namespace ballast::packed
