// SPDX-License-Identifier: Apache-2.0
// Rename rules that would give missing tensors a source, guessed from shapes, order and names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ballast/steps.h"

namespace ballast {

struct NamedShape {
  std::string key;
  std::vector<std::int64_t> shape;
  bool any_shape = false;
};

/// `missing`: keys that were looked for, `unused`: keys nobody wanted, both in order. Every rule maps at
/// least one of the second onto one of the first. `stripped` ("module.") stood before all keys and was
/// removed after the renames: the rules are for keys that still have it.
[[nodiscard]] std::vector<RenameRule> suggest_renames(const std::vector<NamedShape>& missing,
                                                      const std::vector<NamedShape>& unused,
                                                      std::string_view stripped);

}  // namespace ballast
