// SPDX-License-Identifier: Apache-2.0
// Files and folders in existence that nobody shall find later, as plain characters, so that a signal handler
// can remove them.
#pragma once

#include <cstdint>
#include <string>

namespace ballast {

/// `scratch`: a folder that goes with the files in it; other folders go when they are empty.
enum class Unfinished : std::uint8_t { plain, scratch };

/// The entry's number, or -1 when there is no room: that file then survives a signal.
[[nodiscard]] int list_unfinished(const std::string& path, Unfinished kind = Unfinished::plain) noexcept;
void unlist_unfinished(int entry) noexcept;

}  // namespace ballast
