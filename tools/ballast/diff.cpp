// SPDX-License-Identifier: Apache-2.0
// ballast diff: what differs between two files, whatever their formats.
#include "ballast/diff.h"

#include <algorithm>

#include "ballast/error.h"
#include "commands.h"
#include "diff_print.h"
#include "diff_rows.h"
#include "state_dict.h"
#include "steps.h"

namespace tool {
namespace {

struct DiffArguments {
  StepArguments steps;
  bool markdown = false;
  bool no_renames = false;
  bool inert = false;
  DiffView view;
  ballast::DiffOptions options;
};

struct Sides {
  ballast::Checkpoint a;
  ballast::Checkpoint b;
};

// The steps that made B of A are done to A; a pattern that both are asked for may match in one of them.
Sides read(Session& session, const DiffArguments& arguments) {
  const auto open = [&](const std::string& path) {
    return session.open(path, {.io = ballast::Io::read, .inert = arguments.inert});
  };
  const ballast::Steps steps = steps_of(arguments.steps);
  ballast::Checkpoint other = open(arguments.view.b);
  const ballast::Steps of_b = ballast::steps_of_other(steps, other);
  ballast::Stepped a = ballast::apply_steps(open(arguments.view.a), steps);
  ballast::Stepped b = ballast::apply_steps(std::move(other), of_b);
  note_found(session, arguments.view.a, a.root);
  note_found(session, arguments.view.b, b.root);
  if (of_b.root != steps.root)
    session.note(fmt::format("{}: has nothing under {}, compared as a whole",
                             ballast::display(arguments.view.b), ballast::quoted(*steps.root)));
  std::erase_if(a.unmatched, [&](const std::string& pattern) {
    const bool asked_of_b =
        std::ranges::count(of_b.include, pattern) + std::ranges::count(of_b.exclude, pattern) > 0;
    return asked_of_b && std::ranges::count(b.unmatched, pattern) == 0;
  });
  warn_unmatched(session, a.unmatched);
  return {std::move(a.checkpoint), std::move(b.checkpoint)};
}

int diff(Session& session, const DiffArguments& arguments) {
  const Sides sides = read(session, arguments);
  ballast::DiffOptions options = arguments.options;
  options.find_renamed = !arguments.no_renames;
  options.lengths = arguments.view.per_layer;
  ballast::DiffReport report = [&] {
    ProgressBar bar = session.progress("diff", arguments.view.b);
    options.progress = bar.callback();
    return ballast::diff(sides.a, sides.b, options);
  }();
  sort_diff(report.tensors, arguments.view.sort);
  if (session.json)
    print_diff_json(session, arguments.view, report);
  else if (arguments.markdown)
    print_diff_markdown(session, arguments.view, report);
  else if (!session.quiet)
    print_diff(session, arguments.view, report);
  return report.same() ? kFine : kFound;
}

}  // namespace

void add_diff(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<DiffArguments>();
  CLI::App& command = add_command(
      app, session, "diff", "compare two files, of any formats: names, shapes, dtypes and every value",
      "  ballast diff model.pt model.safetensors\n"
      "  ballast diff before.safetensors after.safetensors --tolerance 1e-3\n"
      "  ballast diff trained.pt release.safetensors --rename '^net\\.=' --dtype bf16\n"
      "  ballast diff v1.pt v2.pt --sort rel-l2 --fold\n"
      "  ballast diff v1.pt v2.pt --depth 2 --sort rel-l2\n"
      "  ballast diff v1.pt v2.pt --markdown > changes.md");
  command.add_option("A", arguments->view.a, "A checkpoint")->required();
  command.add_option("B", arguments->view.b, "Another one")->required();
  command
      .add_option("--tolerance", arguments->options.tolerance,
                  "Values may differ by X; dtypes may differ then, too")
      ->type_name("X")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--relative", arguments->options.relative, "Or by this part of the larger one of the two")
      ->type_name("X")
      ->check(CLI::NonNegativeNumber);
  add_step_options(command, arguments->steps, kStateDict);
  command.add_flag("--no-renames", arguments->no_renames, "Do not look for tensors under other names");
  command.add_flag("-a,--all", arguments->view.all, "List tensors that are equal, too");
  command
      .add_option("--sort", arguments->view.sort,
                  "file, name, or largest first max (MAX ABS) or rel-l2 (default: file)")
      ->type_name("KEY")
      ->check(CLI::IsMember({"file", "name", "max", "rel-l2"}));
  command.add_flag("--per-layer", arguments->view.per_layer,
                   "One row for each layer, with the sums of its tensors: how far it moved as a whole");
  command
      .add_option_function<int>(
          "--depth",
          [arguments](int depth) {
            arguments->view.depth = depth;
            arguments->view.per_layer = true;
          },
          "Layers by the first N parts of their names: 2 for layers.3; makes it --per-layer")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  add_fold_options(command, arguments->view.fold);
  command.add_flag("--markdown", arguments->markdown, "A Markdown table");
  add_inert_option(command, arguments->inert);
  add_io_option(command, session);
  command.callback(
      [&session, arguments] { session.run = [&session, arguments] { return diff(session, *arguments); }; });
}

}  // namespace tool
