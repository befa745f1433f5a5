// SPDX-License-Identifier: Apache-2.0
// ballast stats: range, mean, spread and oddities of every tensor.
#include "ballast/stats.h"

#include <cmath>

#include "ballast/display.h"
#include "commands.h"
#include "rows.h"
#include "selection.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

struct StatsOptions {
  std::vector<std::string> files;
  Selection selection;
  std::string sort = "file";
  bool inert = false;
};

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4g}", value);
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  if (part == 0 || whole == 0) return "-";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return percent < 0.01 ? "<0.01 %" : fmt::format("{:.{}f} %", percent, percent < 10 ? 2 : 1);
}

Cell oddity(std::uint64_t count) {
  return {count == 0 ? "-" : grouped(count), count == 0 ? Style::dim : Style::red};
}

void print_table(Session& session, const std::vector<Row>& rows,
                 const std::vector<ballast::TensorStats>& stats) {
  Table table({{"NAME"},
               {"DTYPE"},
               {"SHAPE"},
               {"MIN", Align::right},
               {"MAX", Align::right},
               {"MEAN", Align::right},
               {"STD", Align::right},
               {"ZEROS", Align::right},
               {"NAN", Align::right},
               {"INF", Align::right}});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ballast::TensorStats& s = stats[i];
    table.add({ballast::display(rows[i].name),
               {ballast::info(rows[i].dtype).code, Style::cyan},
               to_string(rows[i].shape),
               number(s.min),
               number(s.max),
               number(s.mean),
               number(s.std),
               share(s.zeros, s.count),
               oddity(s.nan),
               oddity(s.inf)});
  }
  if (!table.empty()) table.print(session.out, session.stdout_terminal);
}

void fill_json(Json& object, const ballast::Checkpoint& checkpoint, const std::vector<Row>& rows,
               const std::vector<ballast::TensorStats>& stats) {
  object["format"] = checkpoint.format;
  Json tensors = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ballast::TensorStats& s = stats[i];
    tensors.push_back({{"name", rows[i].name},
                       {"dtype", ballast::info(rows[i].dtype).code},
                       {"shape", shape_array(rows[i].shape)},
                       {"count", s.count},
                       {"nan", s.nan},
                       {"inf", s.inf},
                       {"zeros", s.zeros},
                       {"min", number_or_null(s.min)},
                       {"max", number_or_null(s.max)},
                       {"mean", number_or_null(s.mean)},
                       {"std", number_or_null(s.std)}});
  }
  object["tensors"] = std::move(tensors);
  object["notes"] = checkpoint.notes;
}

int show_stats(Session& session, const StatsOptions& options, const std::string& path, Json& object) {
  const ballast::Checkpoint checkpoint =
      select(session.open(path, {.map = false, .inert = options.inert}), options.selection);
  std::vector<Row> rows = rows_of(checkpoint);
  std::erase_if(rows, [&](const Row& row) { return !checkpoint[row.first].tensor().has_data(); });
  sort_rows(rows, options.sort);
  std::vector<ballast::Tensor> tensors;
  for (const Row& row : rows) tensors.push_back(checkpoint[row.first].tensor());
  std::vector<ballast::TensorStats> stats;
  {
    ProgressBar bar = session.progress("stats", path);
    stats = ballast::stats(tensors, bar.callback());
  }
  if (session.json) {
    fill_json(object, checkpoint, rows, stats);
    return kFine;
  }
  if (options.files.size() > 1 && path != options.files.front()) session.out.line("");
  if (options.files.size() > 1)
    session.out.line(session.stdout_terminal.paint(ballast::display(path), Style::bold));
  print_table(session, rows, stats);
  session.out.line(session.stdout_terminal.paint(totals_of(rows).text(), Style::bold));
  session.out.flush();
  for (const std::string& note : checkpoint.notes) session.note(note);
  return kFine;
}

}  // namespace

void add_stats(CLI::App& app, Session& session) {
  auto options = std::make_shared<StatsOptions>();
  CLI::App& command =
      add_command(app, session, "stats", "range, mean and spread of the values of every tensor",
                  "  ballast stats model.safetensors\n"
                  "  ballast stats model.pt --include 'norm' --json");
  command.add_option("FILE", options->files, "Checkpoints of any format")->required();
  add_selection_options(command, options->selection);
  command.add_option("--sort", options->sort, "file (default), name or size")
      ->type_name("KEY")
      ->check(CLI::IsMember({"file", "name", "size"}));
  command.add_flag("--inert", options->inert,
                   "Read past calls in a pickle that could run code; nothing is ever run");
  command.callback([&session, options] {
    session.run = [&session, options] {
      return for_each_file(session, options->files, [&](const std::string& path, Json& object) {
        return show_stats(session, *options, path, object);
      });
    };
  });
}

}  // namespace tool
