// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <fmt/format.h>

#include "ballast/error.h"
#include "fail.h"
#include "state_dict.h"

namespace tool {
namespace {

std::vector<ballast::RenameRule> parse_renames(const std::vector<std::string>& texts) {
  std::vector<ballast::RenameRule> rules;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      fail(ballast::Errc::invalid_argument, "--rename", "{} is not PATTERN=REPLACEMENT",
           ballast::quoted(text));
    }
    rules.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return rules;
}

ballast::DType parse_dtype(const std::string& word) {
  const auto dtype = ballast::dtype_from_name(word);
  if (!dtype) {
    fail(ballast::Errc::invalid_argument, "--dtype",
         "{} is no dtype; f32, f16, bf16, f64, f8_e4m3 and f8_e5m2 are the usual ones",
         ballast::quoted(word));
  }
  if (!ballast::is_floating(*dtype)) {
    fail(ballast::Errc::invalid_argument, "--dtype", "{} is no floating-point dtype",
         ballast::info(*dtype).code);
  }
  return *dtype;
}

void add_patterns(CLI::App& command, const std::string& flag, std::vector<std::string>& patterns,
                  const std::string& help, const std::string& type = "RE") {
  command.add_option(flag, patterns, help)->type_name(type)->allow_extra_args(false);
}

}  // namespace

void add_filter_options(CLI::App& command, ballast::Steps& steps) {
  add_patterns(command, "--include", steps.include, "Only tensors whose name matches; may be given again");
  add_patterns(command, "--exclude", steps.exclude, "No tensors whose name matches; may be given again");
}

void add_step_options(CLI::App& command, StepArguments& arguments, const std::string& otherwise) {
  ballast::Steps& steps = arguments.steps;
  add_root_option(command, steps.root, otherwise);
  add_patterns(command, "--rename", arguments.rename,
               "Replace every match of RE in names, rules in order; $1 is a group", "RE=TO");
  command
      .add_option("--rules", arguments.rules,
                  "Rename, reshape, split and join as this JSON file says, after --rename")
      ->type_name("FILE");
  command.add_flag("--strip-prefixes", steps.strip_prefixes,
                   "Remove module. and _orig_mod. where all names begin with them");
  add_filter_options(command, steps);
  add_patterns(
      command, "--reindex", steps.reindex,
      "Close the gaps in the numbers behind prefixes that RE matches: layers.0, 2, 4 become 0, 1, 2");
  add_patterns(command, "--keep-positions", steps.keep_positions,
               "But not in the numbers behind prefixes that this RE matches");
  command
      .add_option(
          "--dtype", arguments.dtype,
          "Cast floating tensors: f32 (full), f16 (half), bf16, f64 (double), f8_e4m3, f8_e5m2; others stay")
      ->type_name("DTYPE");
  add_patterns(command, "--keep-dtype", steps.keep_dtype,
               "Never narrow tensors whose name matches, nor batch norms");
  command.add_flag("!--no-keep-statistics", steps.keep_statistics,
                   "Narrow batch norms with statistics like other tensors");
}

ballast::Steps steps_of(const StepArguments& arguments) {
  ballast::Steps steps = arguments.steps;
  steps.rename = parse_renames(arguments.rename);
  if (!arguments.rules.empty()) steps.rules = ballast::rules::read(arguments.rules);
  if (arguments.dtype && *arguments.dtype != "keep") steps.dtype = parse_dtype(*arguments.dtype);
  return steps;
}

ballast::Checkpoint apply_steps(const Session& session, ballast::Checkpoint file,
                                const ballast::Steps& steps) {
  const std::string path = file.path;
  ballast::Stepped stepped = ballast::apply_steps(std::move(file), steps);
  note_found(session, path, stepped.root);
  warn_unmatched(session, stepped.unmatched);
  return std::move(stepped.checkpoint);
}

void warn_unmatched(const Session& session, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns)
    session.warn(fmt::format("the pattern {} matched nothing", ballast::quoted(pattern)));
}

}  // namespace tool
