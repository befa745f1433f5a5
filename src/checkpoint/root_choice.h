// SPDX-License-Identifier: Apache-2.0
// What may be the state dict of a file when nobody says.
#pragma once

#include <string>
#include <vector>

#include "ballast/steps.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

struct RootChoice {
  bool whole = true;  ///< the file as it is; its parts, if there are candidates, are parts of one model
  std::vector<RootCandidate> candidates = {};  ///< best first; several that are not `whole` are a question
};

[[nodiscard]] RootChoice root_choice(const Checkpoint& checkpoint);

/// root(), with a note that says where it was found.
[[nodiscard]] FoundRoot take_found(const Checkpoint& checkpoint, const std::string& path);

}  // namespace ballast

#pragma GCC visibility pop
