// SPDX-License-Identifier: Apache-2.0
// Pickles written down opcode by opcode, for people (ballast/scan.h declares what it gives).
#pragma once

#include <string_view>

namespace ballast {

/// Whether a file or an entry of this name is one that Python's loaders would unpickle.
[[nodiscard]] bool is_called_pickle(std::string_view name);

}  // namespace ballast
