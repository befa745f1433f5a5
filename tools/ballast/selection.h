// SPDX-License-Identifier: Apache-2.0
// Which tensors, by name: --include and --exclude.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"

namespace tool {

struct Selection {
  std::vector<std::string> include;
  std::vector<std::string> exclude;

  [[nodiscard]] bool any() const { return !include.empty() || !exclude.empty(); }
};

void add_selection_options(CLI::App& command, Selection& selection);

/// The tensors with a name that some include pattern matches (or there is none) and no exclude pattern does.
[[nodiscard]] ballast::Checkpoint select(ballast::Checkpoint checkpoint, const Selection& selection);

}  // namespace tool
