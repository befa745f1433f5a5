// SPDX-License-Identifier: Apache-2.0
#include "base/hash_xxh3.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace ballast {

struct Xxh3::State {
  XXH3_state_t xxh;
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh);
}

Xxh3::~Xxh3() = default;

void Xxh3::update(std::span<const std::byte> bytes) noexcept {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::uint64_t Xxh3::digest() const noexcept {
  return XXH3_64bits_digest(&state_->xxh);
}

std::string hex(std::uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

}  // namespace ballast
