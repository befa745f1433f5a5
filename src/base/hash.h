// SPDX-License-Identifier: Apache-2.0
// Hashing of names for look-up tables. Seeded per process, so that a file cannot choose names that collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast {

[[nodiscard]] std::uint64_t hash_name(std::string_view name) noexcept;

}  // namespace ballast
