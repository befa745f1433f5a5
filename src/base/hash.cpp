// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <random>

namespace ballast {
namespace {

std::uint64_t process_seed() {
  static const std::uint64_t seed = [] {
    std::random_device random;
    return static_cast<std::uint64_t>(random()) << 32U | random();
  }();
  return seed;
}

}  // namespace

std::uint64_t hash_name(std::string_view name) noexcept {
  return XXH3_64bits_withSeed(name.data(), name.size(), process_seed());
}

}  // namespace ballast
