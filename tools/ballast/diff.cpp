// SPDX-License-Identifier: Apache-2.0
// ballast diff: what differs between two files, whatever their formats.
#include "ballast/diff.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ballast/error.h"
#include "commands.h"
#include "diff_rows.h"
#include "fold.h"
#include "rows.h"
#include "state_dict.h"
#include "steps.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

using ballast::Change;
using ballast::TensorDiff;

struct DiffArguments {
  std::string a;
  std::string b;
  StepArguments steps;
  bool markdown = false;
  bool all = false;
  bool no_renames = false;
  bool inert = false;
  std::string sort = "file";
  FoldChoice fold;
  ballast::DiffOptions options;
};

constexpr std::array kChanges = {Change::equal,  Change::within, Change::values,
                                 Change::dtype,  Change::shape,  Change::renamed,
                                 Change::only_a, Change::only_b, Change::layout};

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : "inf";
}

std::string kind_of(ballast::DType dtype, ballast::ShapeView shape) {
  return fmt::format("{} {}", ballast::info(dtype).code, to_string(shape));
}

bool has_distance(const TensorDiff& item) {
  return item.distance.count > 0;
}

// What it was and is, in words.
std::string description(const TensorDiff& item) {
  switch (item.change) {
    case Change::only_a:
      return kind_of(item.dtype_a, item.shape_a);
    case Change::only_b:
      return kind_of(item.dtype_b, item.shape_b);
    case Change::renamed:
      return "→ " + ballast::display(item.other);
    case Change::shape:
      return kind_of(item.dtype_a, item.shape_a) + " → " + kind_of(item.dtype_b, item.shape_b);
    case Change::equal:
    case Change::within:
    case Change::values:
    case Change::dtype:
    case Change::layout:
      break;
  }
  return item.dtype_a == item.dtype_b
             ? kind_of(item.dtype_a, item.shape_a)
             : fmt::format("{} → {} {}", ballast::info(item.dtype_a).code, ballast::info(item.dtype_b).code,
                           to_string(item.shape_a));
}

// DIFFERING, MAX ABS, MAX REL, REL L2, ULP, COSINE.
std::array<std::string, 6> figures(const TensorDiff& item) {
  if (!has_distance(item)) return {"", "", "", "", "", ""};
  const ballast::Distance& d = item.distance;
  return {d.differing == 0 ? "bits only" : fmt::format("{} of {}", grouped(d.differing), grouped(d.count)),
          number(d.max_abs),
          number(d.max_rel),
          d.rel_l2 ? number(*d.rel_l2) : "-",
          d.max_ulp ? grouped(*d.max_ulp) : "-",
          d.cosine ? fmt::format("{:.9f}", *d.cosine) : "-"};
}

Style style_of(Change change) {
  switch (change) {
    case Change::equal:
    case Change::within:
      return Style::green;
    case Change::renamed:
      return Style::cyan;
    default:
      return Style::red;
  }
}

std::string summary(const ballast::DiffReport& report) {
  std::string text;
  for (const Change change : kChanges) {
    const std::size_t count = report.count(change);
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), name(change));
  }
  return text.empty() ? "no tensors" : text;
}

std::string shown_name(const DiffRow& row, const Terminal& terminal) {
  return ballast::display(row.item.name) + times(row.tensors, terminal);
}

void print_text(Session& session, const DiffArguments& arguments, const ballast::DiffReport& report) {
  Table table({{"TENSOR"},
               {"CHANGE"},
               {"WHAT"},
               {"DIFFERING", Align::right, true},
               {"MAX ABS", Align::right},
               {"MAX REL", Align::right, true},
               {"REL L2", Align::right, true},
               {"ULP", Align::right, true},
               {"COSINE", Align::right, true}});
  table.stream(session.out, session.stdout_terminal);
  const std::size_t count = report.tensors.size() - (arguments.all ? 0 : report.count(Change::equal));
  const bool fold = arguments.fold.holds(session, count);
  const std::vector<DiffRow> rows = diff_rows(report.tensors, arguments.all, fold);
  for (const DiffRow& row : rows) {
    const auto f = figures(row.item);
    table.add({shown_name(row, session.stdout_terminal),
               {name(row.item.change), style_of(row.item.change)},
               description(row.item),
               f[0],
               f[1],
               f[2],
               f[3],
               f[4],
               f[5]});
  }
  if (!table.empty()) table.print(session.out, session.stdout_terminal);
  session.out.line(session.stdout_terminal.paint(summary(report), Style::bold));
  session.out.flush();
  if (rows.size() < count) arguments.fold.say(session);
  if (!table.left_out().empty())
    session.note(fmt::format("no room for {}; a wider terminal or --json has them", table.left_out()));
}

// A cell of a table: nothing in it ends the cell or becomes markup.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<' || c == '[') out += '\\';
    out += c;
  }
  return out;
}

void print_markdown(Session& session, const DiffArguments& arguments, const ballast::DiffReport& report) {
  session.out.print("**{}** and **{}**: {}\n\n", cell(ballast::display(arguments.a)),
                    cell(ballast::display(arguments.b)), summary(report));
  session.out.write(
      "| tensor | change | what | differing | max abs | max rel | rel L2 | ULP | cosine "
      "|\n|---|---|---|--:|--:|--:|--:|--:|--:|\n");
  for (const DiffRow& row : diff_rows(report.tensors, arguments.all, arguments.fold.fold)) {
    const auto f = figures(row.item);
    session.out.print("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                      cell(shown_name(row, session.stdout_terminal)), name(row.item.change),
                      cell(description(row.item)), f[0], f[1], f[2], f[3], f[4], f[5]);
  }
}

void write_distance(JsonStream& json, const ballast::Distance& d) {
  json.member("values", d.count).member("differing", d.differing).member("outside", d.outside);
  if (d.differing > 0) json.member("first", d.first);
  json.member("max_abs", d.max_abs).member("max_rel", d.max_rel);
  json.member("max_ulp", d.max_ulp ? Json(*d.max_ulp) : Json(nullptr));
  json.member("cosine", d.cosine ? Json(*d.cosine) : Json(nullptr));
  json.member("rel_l2", d.rel_l2 ? Json(*d.rel_l2) : Json(nullptr));
}

void write_item(JsonStream& json, const TensorDiff& item) {
  const auto side = [&](std::string_view key, bool is_there, ballast::DType dtype, ballast::ShapeView shape) {
    json.key(key);
    if (!is_there)
      json.value(nullptr);
    else
      json.begin_object().member("dtype", ballast::info(dtype).code).member("shape", shape).end();
  };
  json.begin_object().member("name", item.name).member("change", name(item.change));
  if (item.change == Change::renamed) json.member("other", item.other);
  side("a", item.change != Change::only_b, item.dtype_a, item.shape_a);
  side("b", item.change != Change::only_a, item.dtype_b, item.shape_b);
  json.member("bit_equal", item.change == Change::equal || item.change == Change::renamed ||
                               item.change == Change::layout);
  if (has_distance(item)) write_distance(json, item.distance);
  json.end();
}

void print_json(Session& session, const DiffArguments& arguments, const ballast::DiffReport& report) {
  Json counts = Json::object();
  for (const Change change : kChanges) counts[std::string(name(change))] = report.count(change);
  JsonStream json(session.out);
  json.begin_object().member("schema", 1).member("a", arguments.a).member("b", arguments.b);
  json.member("same", report.same()).member("counts", counts).key("tensors").begin_rows();
  for (const TensorDiff& item : report.tensors) write_item(json, item);
  json.finish();
}

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
  ballast::Checkpoint other = open(arguments.b);
  const ballast::Steps of_b = ballast::steps_of_other(steps, other);
  ballast::Stepped a = ballast::apply_steps(open(arguments.a), steps);
  ballast::Stepped b = ballast::apply_steps(std::move(other), of_b);
  note_found(session, arguments.a, a.root);
  note_found(session, arguments.b, b.root);
  if (of_b.root != steps.root)
    session.note(fmt::format("{}: has nothing under {}, compared as a whole", ballast::display(arguments.b),
                             ballast::quoted(*steps.root)));
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
  ballast::DiffReport report = [&] {
    ProgressBar bar = session.progress("diff", arguments.b);
    options.progress = bar.callback();
    return ballast::diff(sides.a, sides.b, options);
  }();
  sort_diff(report.tensors, arguments.sort);
  if (session.json)
    print_json(session, arguments, report);
  else if (arguments.markdown)
    print_markdown(session, arguments, report);
  else if (!session.quiet)
    print_text(session, arguments, report);
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
      "  ballast diff v1.pt v2.pt --markdown > changes.md");
  command.add_option("A", arguments->a, "A checkpoint")->required();
  command.add_option("B", arguments->b, "Another one")->required();
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
  command.add_flag("-a,--all", arguments->all, "List tensors that are equal, too");
  command
      .add_option("--sort", arguments->sort,
                  "file, name, or largest first max (MAX ABS) or rel-l2 (default: file)")
      ->type_name("KEY")
      ->check(CLI::IsMember({"file", "name", "max", "rel-l2"}));
  add_fold_options(command, arguments->fold);
  command.add_flag("--markdown", arguments->markdown, "A Markdown table");
  add_inert_option(command, arguments->inert);
  add_io_option(command, session);
  command.callback(
      [&session, arguments] { session.run = [&session, arguments] { return diff(session, *arguments); }; });
}

}  // namespace tool
