// SPDX-License-Identifier: Apache-2.0
#include "selection.h"

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
  return ballast::filter(checkpoint, selection.include, selection.exclude);
}

}  // namespace tool
