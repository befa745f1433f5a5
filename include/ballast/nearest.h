// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the names nearest to one that was not found. Messages of the library end with it; a program
// that asks for names of its own can do the same.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

/// Up to `count` of `names`, nearest first; only those near enough to be meant.
[[nodiscard]] std::vector<std::string_view> nearest(std::string_view wanted,
                                                    std::span<const std::string_view> names,
                                                    std::size_t count = 3);

/// "; did you mean "a" or "b"?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view wanted, std::span<const std::string_view> names);

}  // namespace ballast
