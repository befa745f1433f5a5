// SPDX-License-Identifier: Apache-2.0
// Where JSON beside a model sends its loaders: to files that nobody has looked at, or others than the usual.
#pragma once

#include <string>
#include <string_view>

#include "ballast/value.h"

namespace ballast {

/// A place in the folder itself, which was looked at. For members that are known to be paths.
[[nodiscard]] bool stays_below(std::string_view path);

/// A member whose values are tokens, which may look like anything.
[[nodiscard]] bool is_of_tokens(std::string_view key);

/// Why a loader of this configuration may open another file than the one it is shown with: a path out of the
/// folder, whatever member it stands in, or weights and tokenizers by other names than the usual ones; ""
/// when it does not.
[[nodiscard]] std::string place_elsewhere(const Value& root);

}  // namespace ballast
