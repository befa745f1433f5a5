// SPDX-License-Identifier: Apache-2.0
// ballast stats: range, mean, spread, distribution and oddities of every tensor.
#include "ballast/stats.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "ballast/error.h"
#include "commands.h"
#include "fail.h"
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
  std::string quantiles;  // as given; "true" without a list
  bool histogram = false;
};

constexpr std::size_t kDrawnBins = 16;
constexpr std::size_t kJsonBins = 256;
constexpr std::string_view kQuantiles = "0.001,0.01,0.05,0.25,0.5,0.75,0.95,0.99,0.999";

// What is shown of one tensor.
struct Shown {
  ballast::TensorStats stats;
  std::vector<double> quantiles = {};
  ballast::Histogram histogram = {};
};

// What to look for beside the stats.
struct Wanted {
  std::vector<double> quantiles;
  std::size_t bins = 0;
};

std::vector<double> shares_in(const std::string& given) {
  std::vector<double> shares;
  std::string_view rest = given == "true" ? kQuantiles : std::string_view(given);
  while (!given.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    double share = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), share);
    if (error != std::errc() || end != part.data() + part.size() || !(share >= 0 && share <= 1)) {
      fail(ballast::Errc::invalid_argument, "--quantiles", "{} is no number from 0 to 1",
           ballast::quoted(part));
    }
    shares.push_back(share);
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  return shares;
}

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
std::string drawn(const std::vector<std::uint64_t>& counts, bool unicode) {
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

void print_table(Session& session, const std::vector<Row>& rows, const std::vector<Shown>& shown,
                 const Wanted& wanted) {
  std::vector<Column> columns = {{"NAME"},
                                 {"DTYPE"},
                                 {"SHAPE"},
                                 {"MIN", Align::right},
                                 {"MAX", Align::right},
                                 {"MEAN", Align::right, true},
                                 {"STD", Align::right, true},
                                 {"ABSMAX", Align::right, true},
                                 {"ZEROS", Align::right, true},
                                 {"NAN", Align::right, true},
                                 {"INF", Align::right, true}};
  for (const double share : wanted.quantiles)
    columns.push_back({fmt::format("{:.10g}%", share * 100), Align::right, true});
  if (wanted.bins > 0) columns.push_back({"MIN TO MAX", Align::left, true});
  Table table(std::move(columns));
  table.stream(session.out, session.stdout_terminal);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ballast::TensorStats& s = shown[i].stats;
    std::vector<Cell> cells = {ballast::display(rows[i].name),
                               {ballast::info(rows[i].dtype).code, Style::cyan},
                               to_string(rows[i].shape),
                               number(s.min),
                               number(s.max),
                               number(s.mean),
                               number(s.std),
                               number(s.absmax()),
                               share(s.zeros, s.count),
                               oddity(s.nan),
                               oddity(s.inf)};
    for (const double value : shown[i].quantiles) cells.emplace_back(number(value));
    if (wanted.bins > 0)
      cells.emplace_back(drawn(shown[i].histogram.counts, session.stdout_terminal.unicode));
    table.add(cells);
  }
  if (!table.empty()) table.print(session.out, session.stdout_terminal);
  say_left_out(session, table);
}

void write_json(JsonStream& json, const ballast::Checkpoint& checkpoint, const std::vector<Row>& rows,
                const std::vector<Shown>& shown, const Wanted& wanted) {
  json.member("format", checkpoint.format.name()).key("tensors").begin_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ballast::TensorStats& s = shown[i].stats;
    json.begin_object().member("name", rows[i].name).member("dtype", ballast::info(rows[i].dtype).code);
    json.member("shape", rows[i].shape).member("count", s.count).member("nan", s.nan).member("inf", s.inf);
    json.member("zeros", s.zeros).member("min", s.min).member("max", s.max).member("mean", s.mean);
    json.member("std", s.std).member("absmax", s.absmax());
    if (!wanted.quantiles.empty()) {
      json.key("quantiles").begin_array();
      for (std::size_t k = 0; k < wanted.quantiles.size(); ++k)
        json.begin_array().value(wanted.quantiles[k]).value(shown[i].quantiles[k]).end();
      json.end();
    }
    if (wanted.bins > 0) {
      json.key("histogram").begin_object().member("edges", shown[i].histogram.edges);
      json.member("counts", shown[i].histogram.counts).end();
    }
    json.end();
  }
  json.end().member("notes", checkpoint.notes);
}

std::vector<Shown> look_at(const std::vector<ballast::Tensor>& tensors, const Wanted& wanted,
                           const ballast::Progress& progress) {
  std::vector<Shown> shown;
  shown.reserve(tensors.size());
  if (wanted.quantiles.empty() && wanted.bins == 0) {
    for (const ballast::TensorStats& stats : ballast::stats(tensors, progress)) shown.push_back({stats});
    return shown;
  }
  ballast::summary(
      tensors,
      [&](std::size_t, const ballast::Summary& summary) {
        Shown& one = shown.emplace_back(Shown{summary.stats});
        for (const double share : wanted.quantiles) one.quantiles.push_back(summary.quantile(share));
        if (wanted.bins > 0) one.histogram = summary.histogram(wanted.bins);
      },
      progress);
  return shown;
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
  Wanted wanted{shares_in(options.quantiles)};
  if (options.histogram || (session.stdout_terminal.is_terminal && !session.json))
    wanted.bins = session.json ? kJsonBins : kDrawnBins;
  std::vector<Shown> shown;
  {
    ProgressBar bar = session.progress("stats", path);
    shown = look_at(tensors, wanted, bar.callback());
  }
  if (session.json) {
    write_json(json, checkpoint, rows, shown, wanted);
    return kFine;
  }
  if (options.files.size() > 1 && path != options.files.front()) session.out.line("");
  if (options.files.size() > 1)
    session.out.line(session.stdout_terminal.paint(ballast::display(path), Style::bold));
  print_table(session, rows, shown, wanted);
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
                  "  ballast stats model.safetensors --quantiles=0.01,0.5,0.99\n"
                  "  ballast stats model.pt --include 'norm' --json");
  command.add_option("FILE", options->files, "Checkpoints of any format")->required();
  add_step_options(command, options->steps, kEverything);
  command.add_option("--sort", options->sort, "file, name or size (default: file)")
      ->type_name("KEY")
      ->check(CLI::IsMember({"file", "name", "size"}));
  command.add_flag("--quantiles", options->quantiles,
                   "The values below which shares of all lie; --quantiles=0.05,0.5 names the shares. Exact "
                   "for dtypes of 16 "
                   "bits and fewer, else within 0.4 % (the middle of one of 65,536 ranges)");
  command.add_flag("--histogram", options->histogram,
                   "How the values lie between the smallest and the largest, in steps that grow with their "
                   "size: 16 (always on a terminal), in JSON 256 with their edges");
  add_inert_option(command, options->inert);
  add_io_option(command, session);
  command.callback([&session, options] {
    session.run = [&session, options] {
      static_cast<void>(shares_in(options->quantiles));  // wrong ones before any work
      return for_each_file(session, options->files, [&](const std::string& path, JsonStream& json) {
        return show_stats(session, *options, path, json);
      });
    };
  });
}

}  // namespace tool
