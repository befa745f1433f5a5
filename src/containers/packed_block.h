// SPDX-License-Identifier: Apache-2.0
// One block of a packed tensor: elements that are packed, and unpacked, without looking at others
// (docs/formats/packed.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "containers/packed_codes.h"
#include "containers/packed_planes.h"
#include "containers/packed_zstd.h"

namespace ballast::packed {

enum class BlockKind : std::uint8_t { raw, small, fast };

inline constexpr std::size_t kBlockHead = 8;

/// What is known of a block before it is packed.
struct BlockPlan {
  std::uint32_t size = 0;     ///< of the block; of BlockKind::small about
  std::uint8_t base = 0;      ///< BlockKind::fast
  std::uint8_t entropic = 0;  ///< BlockKind::small: bit p says that plane p is worth a frame
};

/// Memory that packing works in; for one thread at a time.
class BlockPacker {
 public:
  explicit BlockPacker(Isa isa = best_isa()) : isa_(isa) {}

  [[nodiscard]] BlockPlan plan(BlockKind kind, Split how, std::span<const std::byte> raw);
  /// The same bytes each time. BlockKind::raw where the kind asked for would not be smaller.
  void pack(BlockKind kind, Split how, const BlockPlan& plan, std::span<const std::byte> raw,
            std::vector<std::byte>& out);

 private:
  Planes<std::byte> split_into_planes(Split how, std::span<const std::byte> raw);
  bool pack_fast(Split how, const BlockPlan& plan, std::span<const std::byte> raw,
                 std::vector<std::byte>& out);
  bool pack_small(Split how, const BlockPlan& plan, std::span<const std::byte> raw,
                  std::vector<std::byte>& out);

  Isa isa_;
  std::vector<std::byte> planes_;
  std::vector<std::byte> escapes_;
  std::optional<PlaneCompressor> compressor_;  // made when it is needed
};

/// The same for unpacking.
class BlockUnpacker {
 public:
  explicit BlockUnpacker(Isa isa = best_isa()) : isa_(isa) {}

  /// What must be readable behind a block.
  static constexpr std::size_t kSlack = kGroup;

  /// All of raw.size() bytes, or Errc::bad_packed. `block` is memory that nobody changes, and kSlack bytes
  /// may be read behind it.
  void unpack(Split how, std::span<const std::byte> block, std::span<std::byte> raw,
              const std::string& where);

 private:
  void unpack_fast(Split how, std::span<const std::byte> block, std::span<std::byte> raw,
                   const std::string& where);
  void unpack_small(Split how, std::span<const std::byte> block, std::span<std::byte> raw,
                    const std::string& where);

  Isa isa_;
  std::vector<std::byte> planes_;
  std::optional<PlaneDecompressor> decompressor_;
};

}  // namespace ballast::packed
