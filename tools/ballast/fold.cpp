// SPDX-License-Identifier: Apache-2.0
#include "fold.h"

#include "text.h"

namespace tool {

bool FoldChoice::holds(const Session& session, std::size_t rows) const {
  if (fold || no_fold) return fold;
  return session.stdout_terminal.is_terminal &&
         rows + 4 > static_cast<std::size_t>(session.stdout_terminal.height);
}

void FoldChoice::say(const Session& session) const {
  if (!fold) session.note("tensors that differ only in a number share a row; --no-fold lists every one");
}

void add_fold_options(CLI::App& command, FoldChoice& choice) {
  CLI::Option* fold = command.add_flag(
      "--fold", choice.fold, "One row for tensors that differ only in a number: layers.#.weight x12");
  command
      .add_flag("--no-fold", choice.no_fold,
                "Every tensor its own row (default: folded when longer than the screen)")
      ->excludes(fold);
}

std::string times(std::uint64_t tensors, const Terminal& terminal) {
  return tensors < 2 ? "" : fmt::format("  {}{}", terminal.unicode ? "×" : "x", grouped(tensors));
}

}  // namespace tool
