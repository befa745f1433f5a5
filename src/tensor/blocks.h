// SPDX-License-Identifier: Apache-2.0
// A tensor's row-major bytes in blocks that fit into a cache: for checksums and hashes, in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ballast/tensor.h"
#include "base/sizes.h"

namespace ballast {

/// each(offset, bytes), in order.
template <class Each>
void for_each_block(const Tensor& tensor, Each&& each) {
  const std::uint64_t size = tensor.size_bytes();
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, size)));
  for (std::uint64_t at = 0; at < size; at += buffer.size()) {
    const auto piece =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - at)));
    tensor.read(at, piece);
    each(at, std::span<const std::byte>(piece));
  }
}

}  // namespace ballast
