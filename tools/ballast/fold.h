// SPDX-License-Identifier: Apache-2.0
// --fold and --no-fold: whether tensors that differ only in a number of their name share a row.
#pragma once

#include <cstdint>
#include <string>

#include "session.h"

namespace tool {

struct FoldChoice {
  bool fold = false;
  bool no_fold = false;

  /// For a table of `rows`: longer than the screen, it is folded unless told otherwise. What goes into a file
  /// or a pipe is complete.
  [[nodiscard]] bool holds(const Session& session, std::size_t rows) const;
  /// That rows are shared, where nobody asked for it.
  void say(const Session& session) const;
};

void add_fold_options(CLI::App& command, FoldChoice& choice);

/// "  ×12" behind a name that stands for several; nothing behind one.
[[nodiscard]] std::string times(std::uint64_t tensors, const Terminal& terminal);

}  // namespace tool
