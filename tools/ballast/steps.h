// SPDX-License-Identifier: Apache-2.0
// The steps between opening and using a file, as options of commands (docs/options.md).
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ballast/steps.h"
#include "session.h"

namespace tool {

struct StepArguments {
  ballast::Steps steps;  ///< but for what is still text:
  std::vector<std::string> rename;
  std::string rules;
  std::optional<std::string> dtype;
};

/// --include and --exclude alone.
void add_filter_options(CLI::App& command, ballast::Steps& steps);

/// `otherwise`: what --root means when it is not given (state_dict.h).
void add_step_options(CLI::App& command, StepArguments& arguments, const std::string& otherwise);

[[nodiscard]] ballast::Steps steps_of(const StepArguments& arguments);

/// Where the state dict was found by itself, and patterns that matched nothing, are said.
[[nodiscard]] ballast::Checkpoint apply_steps(const Session& session, ballast::Checkpoint file,
                                              const ballast::Steps& steps);

void warn_unmatched(const Session& session, const std::vector<std::string>& patterns);

/// Into options that have the same fields.
template <class Options>
void set_steps(Options& options, ballast::Steps steps) {
  options.root = std::move(steps.root);
  options.rename = std::move(steps.rename);
  options.rules = std::move(steps.rules);
  options.strip_prefixes = steps.strip_prefixes;
  options.include = std::move(steps.include);
  options.exclude = std::move(steps.exclude);
  options.reindex = std::move(steps.reindex);
  options.keep_positions = std::move(steps.keep_positions);
  options.dtype = steps.dtype;
  options.keep_dtype = std::move(steps.keep_dtype);
  options.keep_statistics = steps.keep_statistics;
}

}  // namespace tool
