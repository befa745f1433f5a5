// SPDX-License-Identifier: Apache-2.0
// ballast stats: range, mean, spread and oddities of every tensor.
#include "ballast/stats.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ballast/error.h"
#include "commands.h"
#include "rows.h"
#include "state_dict.h"
#include "steps.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

struct StatsOptions {
  std::vector<std::string> files;
  StepArguments steps;
  std::string sort = "file";
  bool inert = false;
  bool histogram = false;
};

using Histogram = std::vector<std::uint64_t>;

constexpr std::size_t kBins = 16;

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

// A line of blocks, as high as the share of the fullest bin.
std::string drawn(const Histogram& counts, bool unicode) {
  constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kPlain = " .:-=+*#@";
  const std::uint64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::string out;
  for (const std::uint64_t count : counts) {
    const std::size_t height =
        most == 0 || count == 0
            ? 0
            : 1 + static_cast<std::size_t>(7 * (static_cast<double>(count) / static_cast<double>(most)));
    out += unicode ? kBlocks[height] : kPlain.substr(height, 1);
  }
  return out;
}

void print_table(Session& session, const std::vector<Row>& rows,
                 const std::vector<ballast::TensorStats>& stats, const std::vector<Histogram>& histograms) {
  Table table({{"NAME"},
               {"DTYPE"},
               {"SHAPE"},
               {"MIN", Align::right},
               {"MAX", Align::right},
               {"MEAN", Align::right},
               {"STD", Align::right},
               {"ABSMAX", Align::right},
               {"ZEROS", Align::right},
               {"NAN", Align::right},
               {"INF", Align::right},
               {histograms.empty() ? "" : "MIN TO MAX"}});
  table.stream(session.out, session.stdout_terminal);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ballast::TensorStats& s = stats[i];
    table.add({ballast::display(rows[i].name),
               {ballast::info(rows[i].dtype).code, Style::cyan},
               to_string(rows[i].shape),
               number(s.min),
               number(s.max),
               number(s.mean),
               number(s.std),
               number(s.absmax()),
               share(s.zeros, s.count),
               oddity(s.nan),
               oddity(s.inf),
               histograms.empty() ? "" : drawn(histograms[i], session.stdout_terminal.unicode)});
  }
  if (!table.empty()) table.print(session.out, session.stdout_terminal);
}

void write_json(JsonStream& json, const ballast::Checkpoint& checkpoint, const std::vector<Row>& rows,
                const std::vector<ballast::TensorStats>& stats, const std::vector<Histogram>& histograms) {
  json.member("format", checkpoint.format.name()).key("tensors").begin_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ballast::TensorStats& s = stats[i];
    json.begin_object().member("name", rows[i].name).member("dtype", ballast::info(rows[i].dtype).code);
    json.member("shape", rows[i].shape).member("count", s.count).member("nan", s.nan).member("inf", s.inf);
    json.member("zeros", s.zeros).member("min", s.min).member("max", s.max).member("mean", s.mean);
    json.member("std", s.std).member("absmax", s.absmax());
    if (!histograms.empty()) json.member("histogram", histograms[i]);
    json.end();
  }
  json.end().member("notes", checkpoint.notes);
}

// From the smallest to the largest finite value.
std::vector<Histogram> histograms_of(const std::vector<ballast::Tensor>& tensors,
                                     const std::vector<ballast::TensorStats>& stats) {
  std::vector<Histogram> histograms;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool drawable = stats[i].finite() > 0 && std::isfinite(stats[i].max - stats[i].min);
    histograms.push_back(drawable ? ballast::histogram(tensors[i], stats[i].min, stats[i].max, kBins)
                                  : Histogram());
  }
  return histograms;
}

int show_stats(Session& session, const StatsOptions& options, const std::string& path, JsonStream& json) {
  ballast::Checkpoint file = session.open(path, {.io = ballast::Io::read, .inert = options.inert});
  ballast::Steps steps = steps_of(options.steps);
  steps.quantized = ballast::OnQuantized::keep;
  if (!steps.root) steps.root = "";
  const std::vector<std::string> notes = file.notes;
  const ballast::Checkpoint checkpoint = apply_steps(session, std::move(file), steps);
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
  std::vector<Histogram> histograms;
  if (options.histogram || (session.stdout_terminal.is_terminal && !session.json))
    histograms = histograms_of(tensors, stats);
  if (session.json) {
    write_json(json, checkpoint, rows, stats, histograms);
    return kFine;
  }
  if (options.files.size() > 1 && path != options.files.front()) session.out.line("");
  if (options.files.size() > 1)
    session.out.line(session.stdout_terminal.paint(ballast::display(path), Style::bold));
  print_table(session, rows, stats, histograms);
  session.out.line(session.stdout_terminal.paint(totals_of(rows).text(), Style::bold));
  session.out.flush();
  for (const std::string& note : notes) session.note(note);
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
  add_step_options(command, options->steps, kEverything);
  command.add_option("--sort", options->sort, "file, name or size (default: file)")
      ->type_name("KEY")
      ->check(CLI::IsMember({"file", "name", "size"}));
  command.add_flag(
      "--histogram", options->histogram,
      "How the values lie between the smallest and the largest, in 16 steps (always on a terminal)");
  add_inert_option(command, options->inert);
  add_io_option(command, session);
  command.callback([&session, options] {
    session.run = [&session, options] {
      return for_each_file(session, options->files, [&](const std::string& path, JsonStream& json) {
        return show_stats(session, *options, path, json);
      });
    };
  });
}

}  // namespace tool
