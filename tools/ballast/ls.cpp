// SPDX-License-Identifier: Apache-2.0
// ballast ls: the tensors of a file as a table, a tree, plain lines or JSON. Only headers are read.
#include <algorithm>

#include "ballast/error.h"
#include "ballast/onnx_file.h"
#include "commands.h"
#include "fold.h"
#include "rows.h"
#include "state_dict.h"
#include "steps.h"
#include "table.h"
#include "text.h"
#include "tree.h"

namespace tool {
namespace {

struct LsOptions {
  std::vector<std::string> files;
  ballast::Steps steps{.quantized = ballast::OnQuantized::keep};
  std::string sort = "file";
  int depth = 0;
  bool tree = false;
  bool wide = false;
  bool plain = false;
  FoldChoice fold;
  bool inert = false;
};

std::string shown_name(const Row& row, const Terminal& terminal) {
  std::string name = ballast::display(row.name);
  name += times(row.tensors, terminal);
  if (!row.tied_to.empty()) name += fmt::format("  = {}", ballast::display(row.tied_to));
  return name;
}

// Where the tensor's bytes begin in the file; none when they do not lie there as they are.
std::optional<std::uint64_t> file_offset(const ballast::Checkpoint& checkpoint, const Row& row) {
  const ballast::Tensor tensor = checkpoint[row.first].tensor();
  if (row.tensors > 1 || !tensor.has_data()) return std::nullopt;
  const auto span = tensor.storage()->source_span();
  if (!span) return std::nullopt;
  return span->offset + tensor.bit_offset() / 8;
}

// What has no offset comes last.
void sort_by_offset(std::vector<Row>& rows, const ballast::Checkpoint& checkpoint) {
  std::vector<std::uint64_t> offsets(checkpoint.size());
  for (const Row& row : rows) offsets[row.first] = file_offset(checkpoint, row).value_or(UINT64_MAX);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return offsets[a.first] < offsets[b.first]; });
}

void print_table(Session& session, const ballast::Checkpoint& checkpoint, const std::vector<Row>& rows,
                 bool wide) {
  std::vector<Column> columns = {{"NAME"}, {"DTYPE"}, {"SHAPE"}};
  if (wide)
    columns.insert(
        columns.end(),
        {{"PARAMETERS", Align::right, true}, {"BYTES", Align::right}, {"OFFSET", Align::right, true}});
  else
    columns.push_back({"SIZE", Align::right});
  const bool is_packed = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.packed > 0; });
  if (is_packed) columns.push_back({"PACKED", Align::right, true});
  Table table(std::move(columns));
  table.stream(session.out, session.stdout_terminal);
  for (const Row& row : rows) {
    std::string name = shown_name(row, session.stdout_terminal);
    const std::string_view dtype = ballast::info(row.dtype).code;
    std::vector<Cell> cells = {std::move(name), {dtype, Style::cyan}, to_string(row.shape)};
    if (wide) {
      const auto offset = file_offset(checkpoint, row);
      cells.insert(cells.end(),
                   {grouped(row.parameters), grouped(row.bytes), offset ? std::to_string(*offset) : "-"});
    } else {
      cells.emplace_back(human_bytes(row.bytes));
    }
    if (is_packed)
      cells.emplace_back(row.packed == 0 ? "-" : wide ? grouped(row.packed) : human_bytes(row.packed));
    table.add(cells);
  }
  if (!table.empty()) table.print(session.out, session.stdout_terminal);
  say_left_out(session, table);
}

void print_plain(Session& session, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    session.out.print("{}\t{}\t{}\t{}\n", ballast::display(row.name), ballast::info(row.dtype).code,
                      to_string(row.shape), row.bytes);
  }
}

void write_json(JsonStream& json, const ballast::Checkpoint& checkpoint, const std::vector<Row>& rows) {
  json.member("format", checkpoint.format.name()).key("metadata");
  write_metadata(json, checkpoint.metadata.value_or(ballast::Metadata()));
  json.key("tensors").begin_rows();
  for (const Row& row : rows) {
    json.begin_object().member("name", row.name).member("dtype", ballast::info(row.dtype).code);
    json.member("shape", row.shape).member("bytes", row.bytes);
    if (row.packed > 0) json.member("packed", row.packed);
    if (!row.tied_to.empty()) json.member("tied_to", row.tied_to);
    if (row.constant) json.member("constant", true);
    json.end();
  }
  json.end().member("notes", checkpoint.notes);
}

// One table or tree; whether tensors share rows that would not have with --no-fold.
bool print_rows(Session& session, const LsOptions& options, const ballast::Checkpoint& checkpoint,
                const std::vector<Row>& rows, bool fold) {
  if (options.tree || options.depth > 0) {
    print_tree(session.out, session.stdout_terminal, rows,
               {.fold = !options.fold.no_fold, .depth = options.depth});
    return false;
  }
  const std::vector<Row> shown = fold ? folded(rows) : std::vector<Row>();
  print_table(session, checkpoint, fold ? shown : rows, options.wide);
  return fold && shown.size() < rows.size();
}

void print_for_people(Session& session, const LsOptions& options, const ballast::Checkpoint& checkpoint,
                      std::vector<Row> rows, std::size_t in_file) {
  const bool fold = options.fold.holds(session, rows.size());
  const auto line = [&](const std::string& text) {
    if (session.quiet) return;
    session.out.line(session.stdout_terminal.paint(text, Style::bold));
  };
  const std::string rest = rows.size() == in_file ? "" : fmt::format(" of {} in the file", grouped(in_file));
  const auto constants =
      std::stable_partition(rows.begin(), rows.end(), [](const Row& row) { return !row.constant; });
  const std::vector<Row> weights(rows.begin(), constants);
  rows.erase(rows.begin(), constants);
  bool has_folded = false;
  if (rows.empty() || !weights.empty()) {
    has_folded = print_rows(session, options, checkpoint, weights, fold);
    line(totals_of(weights).text() + rest);
  }
  if (!rows.empty()) {
    if (!weights.empty()) session.out.line("");
    line("constants of the exporter, no weights:");
    has_folded = print_rows(session, options, checkpoint, rows, fold) || has_folded;
    line(totals_of(rows).text() + rest);
  }
  session.out.flush();
  if (has_folded) options.fold.say(session);
  for (const std::string& note : checkpoint.notes) session.note(note);
}

// A copy of all names only where there is something to choose.
ballast::Checkpoint filtered(ballast::Checkpoint whole, ballast::Steps steps) {
  if (steps.include.empty() && steps.exclude.empty()) return whole;
  steps.root = "";  // which was taken
  return ballast::apply_steps(std::move(whole), steps).checkpoint;
}

int list(Session& session, const LsOptions& options, const std::string& path, JsonStream& json) {
  ballast::Checkpoint whole = below(session.open(path, {.inert = options.inert}), options.steps.root);
  const std::size_t in_file = whole.size();
  const ballast::Checkpoint checkpoint = filtered(std::move(whole), options.steps);
  std::vector<Row> rows = rows_of(checkpoint);
  if (checkpoint.format == ballast::formats::onnx)
    mark_constants(rows, ballast::onnx_file::read_info(checkpoint.path).constant_names);
  sort_rows(rows, options.sort);
  if (options.sort == "offset") sort_by_offset(rows, checkpoint);
  if (session.json) {
    write_json(json, checkpoint, rows);
    return kFine;
  }
  if (options.plain) {
    print_plain(session, rows);
    return kFine;
  }
  if (options.files.size() > 1 && path != options.files.front()) session.out.line("");
  if (options.files.size() > 1)
    session.out.line(session.stdout_terminal.paint(ballast::display(path), Style::bold));
  print_for_people(session, options, checkpoint, std::move(rows), in_file);
  return kFine;
}

}  // namespace

void add_ls(CLI::App& app, Session& session) {
  auto options = std::make_shared<LsOptions>();
  CLI::App& command = add_command(app, session, "ls", "list the tensors of a file",
                                  "  ballast ls model.safetensors\n"
                                  "  ballast ls model.pt --tree --depth 2\n"
                                  "  ballast ls model.safetensors --include 'attn.*weight' --sort size\n"
                                  "  ballast ls model.safetensors --json | jq '.tensors[].name'");
  command.add_option("FILE", options->files, "Checkpoints of any format")->required();
  command.add_flag("-t,--tree", options->tree, "As a tree, with the sums of every branch");
  command.add_option("--depth", options->depth, "Levels of the tree to show; makes it one")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  command.add_flag("-l,--long", options->wide, "Exact bytes, parameters and the offset in the file");
  command.add_flag("--plain", options->plain, "Name, dtype, shape and bytes with tabs between, nothing else");
  command
      .add_option(
          "--sort", options->sort,
          "file, name, dtype, shape, offset, or largest first parameters, size (or bytes), packed (default: "
          "file)")
      ->type_name("KEY")
      ->check(CLI::IsMember(
          {"file", "name", "dtype", "shape", "parameters", "size", "bytes", "packed", "offset"}));
  add_root_option(command, options->steps.root, kEverything);
  add_filter_options(command, options->steps);
  add_fold_options(command, options->fold);
  add_inert_option(command, options->inert);
  command.callback([&session, options] {
    session.run = [&session, options] {
      return for_each_file(session, options->files, [&](const std::string& path, JsonStream& json) {
        return list(session, *options, path, json);
      });
    };
  });
}

}  // namespace tool
