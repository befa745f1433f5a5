// SPDX-License-Identifier: Apache-2.0
// NameIndex: which of many things has a certain name. It holds positions and hashes, no names: whoever asks
// tells whether the thing at a position is the one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ballast/detail/compiler.h"

#pragma GCC visibility push(default)

namespace ballast::detail {

// Open addressing, at most half full. Half of each hash is kept, so that strangers are told apart without a
// look at their names, and a larger table is made without hashing them again.
class NameIndex {
 public:
  void reserve(std::size_t names);

  /// The position put under this hash for which same(position) is true.
  template <class Same>
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t hash, const Same& same) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[place(hash, same)];
    if (slot.is_free()) return std::nullopt;
    return slot.position();
  }

  /// From now on the name leads to `position`; returns where it led before. There must be room.
  template <class Same>
  std::optional<std::size_t> put(std::uint64_t hash, std::size_t position, const Same& same) {
    Slot& slot = slots_[place(hash, same)];
    std::optional<std::size_t> before;
    if (!slot.is_free()) before = slot.position();
    slot = {static_cast<std::uint32_t>(position + 1), tag_of(hash)};
    return before;
  }

  /// False, and nothing changed, when the name leads somewhere already. There must be room.
  template <class Same>
  bool add(std::uint64_t hash, std::size_t position, const Same& same) {
    Slot& slot = slots_[place(hash, same)];
    if (!slot.is_free()) return false;
    slot = {static_cast<std::uint32_t>(position + 1), tag_of(hash)};
    return true;
  }

  /// put() for positions 0 … count - 1 of an empty index: hash(i), same(i, j); again(i, j) hears that j has
  /// the name of i, which is not found any more.
  template <class Hash, class Same, class Again>
  void put_all(std::size_t count, const Hash& hash, const Same& same, const Again& again) {
    constexpr std::size_t kAhead = 16;  // hashes computed, and their slots fetched, before they are needed
    reserve(count);
    std::array<std::uint64_t, kAhead> hashes{};
    for (std::size_t first = 0; first < count; first += kAhead) {
      const std::size_t end = count < first + kAhead ? count : first + kAhead;
      for (std::size_t i = first; i < end; ++i) {
        hashes[i - first] = hash(i);
        __builtin_prefetch(&slots_[tag_of(hashes[i - first]) & (slots_.size() - 1)], 1);
      }
      for (std::size_t i = first; i < end; ++i) {
        const auto before = put(hashes[i - first], i, [&](std::size_t other) { return same(other, i); });
        if (before) again(*before, i);
      }
    }
  }

 private:
  struct Slot {
    std::uint32_t position_plus_1 = 0;  // 0: free
    std::uint32_t tag = 0;

    [[nodiscard]] bool is_free() const noexcept { return position_plus_1 == 0; }

    [[nodiscard]] std::size_t position() const noexcept { return position_plus_1 - 1; }
  };

  static std::uint32_t tag_of(std::uint64_t hash) noexcept { return static_cast<std::uint32_t>(hash); }

  // The slot that has the name, or the free one it would take.
  template <class Same>
  [[nodiscard]] std::size_t place(std::uint64_t hash, const Same& same) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = tag_of(hash) & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.is_free() || (slot.tag == tag_of(hash) && same(slot.position()))) return at;
    }
  }

  std::vector<Slot> slots_;  // a power of two, or none
};

}  // namespace ballast::detail

#pragma GCC visibility pop
