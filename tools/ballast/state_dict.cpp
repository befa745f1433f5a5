// SPDX-License-Identifier: Apache-2.0
#include "state_dict.h"

#include <fmt/format.h>

#include "ballast/error.h"
#include "ballast/steps.h"

namespace tool {

void add_root_option(CLI::App& command, std::optional<std::string>& root, const std::string& otherwise) {
  command
      .add_option("--root", root,
                  "What lies under this key (a dotted path), without the key (default: " + otherwise + ")")
      ->type_name("KEY");
}

ballast::Checkpoint below(const ballast::Checkpoint& checkpoint, const std::optional<std::string>& root) {
  return root ? ballast::root(checkpoint, *root) : checkpoint;
}

ballast::Checkpoint state_dict(const Session& session, const ballast::Checkpoint& checkpoint,
                               const std::optional<std::string>& root) {
  if (root) return below(checkpoint, root);
  ballast::FoundRoot found = ballast::find_root(checkpoint);
  note_found(session, checkpoint.path, found.path);
  return std::move(found.checkpoint);
}

void note_found(const Session& session, const std::string& path, const std::string& root) {
  if (root.empty()) return;
  session.note(
      fmt::format("{}: took what lies under {}; --root chooses another place, --root '' takes everything",
                  ballast::display(path), ballast::quoted(root)));
}

}  // namespace tool
