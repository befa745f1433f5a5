// SPDX-License-Identifier: Apache-2.0
// --root for commands that look at tensors: the state dict of a training checkpoint, so that a .pt and what
// was converted from it have one set of names.
#pragma once

#include <optional>
#include <string>

#include "session.h"

namespace tool {

/// What lies under `root`: everything when it is empty, the state dict, found by itself and noted, when there
/// is none.
[[nodiscard]] ballast::Checkpoint state_dict(const Session& session, const ballast::Checkpoint& checkpoint,
                                             const std::optional<std::string>& root);

}  // namespace tool
