// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/name_index.h"

#include <bit>

namespace ballast::detail {

void NameIndex::reserve(std::size_t names) {
  if (names * 2 <= slots_.size()) return;
  std::vector<Slot> larger(std::bit_ceil(names < 8 ? std::size_t{16} : names * 2));
  for (const Slot& slot : slots_) {
    if (slot.is_free()) continue;
    std::size_t at = slot.tag & (larger.size() - 1);
    while (!larger[at].is_free()) at = (at + 1) & (larger.size() - 1);
    larger[at] = slot;
  }
  slots_ = std::move(larger);
}

}  // namespace ballast::detail
