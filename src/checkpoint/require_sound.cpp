// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/require_sound.h"

#include "base/largest_first.h"
#include "tensor/sound.h"

namespace ballast {

void require_sound(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(checkpoint.size());
  for (const Entry& entry : checkpoint) sizes.push_back(entry.bytes);
  largest_first(sizes, [&](std::size_t i) { check_sound(checkpoint[i].tensor(), checkpoint[i].name); });
}

}  // namespace ballast
