// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <chrono>
#include <random>

namespace ballast {
namespace {

std::uint64_t process_seed() {
  static const std::uint64_t seed = []() noexcept -> std::uint64_t {
    try {
      std::random_device random;
      return static_cast<std::uint64_t>(random()) << 32U | random();
    } catch (...) {  // no source of randomness: where the system put us, and when
      const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
      return static_cast<std::uint64_t>(now) * 0x9E37'79B9'7F4A'7C15U ^
             reinterpret_cast<std::uintptr_t>(&process_seed);
    }
  }();
  return seed;
}

}  // namespace

std::uint64_t hash_name(std::string_view name) noexcept {
  return XXH3_64bits_withSeed(name.data(), name.size(), process_seed());
}

}  // namespace ballast
