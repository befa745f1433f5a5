// SPDX-License-Identifier: Apache-2.0
// Hashing of names for look-up tables. Seeded per process, so that a file cannot choose names that collide.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

[[nodiscard]] std::uint64_t hash_name(std::string_view name) noexcept;

/// For the standard containers: whatever holds a file's own strings is hashed by it.
struct NameHash {
  using is_transparent = void;

  std::size_t operator()(std::string_view name) const noexcept { return hash_name(name); }
};

template <class T>
using NameMap = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;
/// Of names that live elsewhere.
template <class T>
using NameViewMap = std::unordered_map<std::string_view, T, NameHash, std::equal_to<>>;
using NameSet = std::unordered_set<std::string, NameHash, std::equal_to<>>;
using NameViewSet = std::unordered_set<std::string_view, NameHash, std::equal_to<>>;

}  // namespace ballast

#pragma GCC visibility pop
