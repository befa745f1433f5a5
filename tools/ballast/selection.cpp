// SPDX-License-Identifier: Apache-2.0
#include "selection.h"

#include <fmt/format.h>

#include "ballast/display.h"
#include "ballast/error.h"
#include "ballast/steps.h"

namespace tool {

void add_selection_options(CLI::App& command, Selection& selection) {
  command.add_option("--include", selection.include, "Only tensors whose name matches; may be given again")
      ->type_name("RE")
      ->allow_extra_args(false);
  command.add_option("--exclude", selection.exclude, "No tensors whose name matches; may be given again")
      ->type_name("RE")
      ->allow_extra_args(false);
}

ballast::Checkpoint select(ballast::Checkpoint checkpoint, const Selection& selection) {
  if (!selection.any()) return checkpoint;
  ballast::Checkpoint chosen = ballast::filter(checkpoint, selection.include, selection.exclude);
  // A slip in a pattern must not look like a file in which everything is fine.
  if (chosen.empty() && !checkpoint.empty())
    throw ballast::Error(
        ballast::Errc::not_found, ballast::display(checkpoint.path),
        fmt::format("none of its {} tensors is left by --include and --exclude; the first is {}",
                    checkpoint.size(), ballast::quoted(checkpoint[0].name)));
  return chosen;
}

}  // namespace tool
