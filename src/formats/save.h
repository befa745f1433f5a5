// SPDX-License-Identifier: Apache-2.0
// What the names of files say.
#pragma once

#include <string_view>

namespace ballast {

/// An extension under which save() writes a format.
[[nodiscard]] bool has_known_extension(std::string_view path);

}  // namespace ballast
