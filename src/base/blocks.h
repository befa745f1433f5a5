// SPDX-License-Identifier: Apache-2.0
// Bytes in blocks that fit into a cache: for checksums, hashes and copies, in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sizes.h"

namespace ballast {

/// each(offset, bytes) for bytes [begin, end) of what has read(offset, span), in order.
template <class Bytes, class Each>
void for_each_block(const Bytes& from, std::uint64_t begin, std::uint64_t end, Each&& each) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, end - begin)));
  for (std::uint64_t at = begin; at < end; at += buffer.size()) {
    const auto piece =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - at)));
    from.read(at, piece);
    each(at, std::span<const std::byte>(piece));
  }
}

}  // namespace ballast
