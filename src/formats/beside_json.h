// SPDX-License-Identifier: Apache-2.0
// JSON that lies beside a model. Its loaders import and call what they find named in it, and each has keys
// of its own for that; so what is inert is told by what is known of it, not by what is known to be bad.
#pragma once

#include <string>
#include <string_view>

#include "ballast/value.h"

namespace ballast {

/// Why this JSON is not inert: it is of a name nobody knows, has a member that loaders import from, names
/// code ("os.abort") anywhere, or makes its loader open another file than the one that was looked at; "" when
/// it is. `name` is the file's own, in small letters.
[[nodiscard]] std::string code_in_json(const Value& root, std::string_view name);

}  // namespace ballast
