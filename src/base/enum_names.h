// SPDX-License-Identifier: Apache-2.0
// Names of an enum's values: a list in their order.
#pragma once

#include <cstddef>
#include <string_view>

namespace ballast {

/// `last` is the last value there is, so that a new one cannot be forgotten.
template <auto last, std::size_t N>
[[nodiscard]] constexpr std::string_view name_in(const std::string_view (&names)[N],
                                                 decltype(last) value) noexcept {
  static_assert(N == static_cast<std::size_t>(last) + 1);
  const auto number = static_cast<std::size_t>(value);
  return number < N ? names[number] : "unknown";
}

}  // namespace ballast
