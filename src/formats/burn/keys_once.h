// SPDX-License-Identifier: Apache-2.0
// The keys of a map while it is read: a key that stands twice is refused, because readers differ in which of
// the two they take, and some take both.
#pragma once

#include <algorithm>
#include <vector>

#include "ballast/error.h"
#include "base/budget.h"
#include "base/fail.h"
#include "base/hash.h"

namespace ballast::burn {

class KeysOnce {
 public:
  explicit KeysOnce(Budget& budget) : budget_(budget) {}

  void add(std::string_view key) {
    budget_.take(kBytes);
    hashes_.push_back(hash_name(key));
  }

  /// At the map's end. `map` names it.
  void check(const std::string& where, std::string_view map) {
    budget_.give_back(hashes_.size() * kBytes);
    std::sort(hashes_.begin(), hashes_.end());
    if (std::adjacent_find(hashes_.begin(), hashes_.end()) != hashes_.end())
      fail(Errc::duplicate_key, where, "a key stands twice in the map {}", quoted(map));
  }

 private:
  static constexpr std::uint64_t kBytes = 2 * sizeof(std::uint64_t);  // a vector may have twice what it holds

  Budget& budget_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace ballast::burn
