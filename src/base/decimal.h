// SPDX-License-Identifier: Apache-2.0
// Numbers as text.
#pragma once

#include <optional>
#include <string_view>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// The double nearest to a number ("-1.5e3", "inf", "nan"), whatever the locale; zero, with its sign, where
/// it is smaller than all of them. Nothing where the text is no number, or one beyond the largest.
[[nodiscard]] std::optional<double> double_of(std::string_view text) noexcept;

}  // namespace ballast

#pragma GCC visibility pop
