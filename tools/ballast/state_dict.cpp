// SPDX-License-Identifier: Apache-2.0
#include "state_dict.h"

#include <fmt/format.h>

#include "ballast/display.h"
#include "ballast/root.h"

namespace tool {

ballast::Checkpoint state_dict(const Session& session, const ballast::Checkpoint& checkpoint,
                               const std::optional<std::string>& root) {
  if (root) return root->empty() ? checkpoint : ballast::root(checkpoint, *root);
  ballast::FoundRoot found = ballast::find_root(checkpoint);
  if (!found.path.empty())
    session.note(fmt::format("{}: took what lies under {}", ballast::display(checkpoint.path),
                             ballast::quoted(found.path)));
  return std::move(found.checkpoint);
}

}  // namespace tool
