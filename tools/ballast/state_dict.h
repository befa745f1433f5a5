// SPDX-License-Identifier: Apache-2.0
// --root: a part of a training checkpoint, and the state dict in it, so that a .pt and what was converted
// from it have one set of names.
#pragma once

#include <optional>
#include <string>

#include "session.h"

namespace tool {

/// What --root means when it is not given.
inline constexpr const char* kStateDict = "the state dict, found by itself; '' for everything";
inline constexpr const char* kEverything = "everything";

void add_root_option(CLI::App& command, std::optional<std::string>& root, const std::string& otherwise);

/// What lies under `root`; everything when there is none.
[[nodiscard]] ballast::Checkpoint below(const ballast::Checkpoint& checkpoint,
                                        const std::optional<std::string>& root);
/// What lies under `root`; the state dict, found by itself and noted, when there is none.
[[nodiscard]] ballast::Checkpoint state_dict(const Session& session, const ballast::Checkpoint& checkpoint,
                                             const std::optional<std::string>& root);
/// Says where the state dict was found by itself, if it was.
void note_found(const Session& session, const std::string& path, const std::string& root);

}  // namespace tool
