// SPDX-License-Identifier: Apache-2.0
// ballast show: what a file is. Its format, size and metadata; for PyTorch files everything that was saved,
// as a tree of types and one-line values; for a single tensor its place, its first values and their range.
#include <algorithm>

#include "ballast/error.h"
#include "ballast/stats.h"
#include "commands.h"
#include "fail.h"
#include "rows.h"
#include "table.h"
#include "text.h"
#include "value_lines.h"
#include "written.h"

namespace tool {
namespace {

constexpr std::int64_t kPreview = 6;
constexpr std::size_t kTiesShown = 20;

struct ShowOptions {
  std::string file;
  std::string path;
  ValueLimits limits;
  bool inert = false;
};

// What is shown stays in proportion to the file, however often it refers to one text.
ValueLimits limits_of(const ShowOptions& options) {
  ValueLimits limits = options.limits;
  limits.characters += 8 * size_of_file(options.file);
  return limits;
}

std::vector<double> first_values(const ballast::Tensor& tensor) {
  const std::int64_t count = std::min(kPreview, tensor.numel());
  if (!ballast::is_real(tensor.dtype()) || !tensor.has_data() || count == 0) return {};
  std::vector<std::byte> bytes(ballast::Tensor(tensor.dtype(), {count}).size_bytes());
  tensor.read(0, bytes);
  const auto storage = ballast::Storage::borrow(static_cast<const void*>(bytes.data()), bytes.size());
  const ballast::Tensor values =
      ballast::Tensor::contiguous_view(tensor.dtype(), {count}, storage).to(ballast::DType::f64).contiguous();
  const auto span = values.span<double>();
  return {span.begin(), span.end()};
}

std::string preview(const ballast::Tensor& tensor) {
  std::string text;
  for (const double value : first_values(tensor))
    text += fmt::format("{}{:.5g}", text.empty() ? "" : ", ", value);
  return tensor.numel() > kPreview && !text.empty() ? text + ", ..." : text;
}

int show_tensor(Session& session, const std::string& name, const ballast::Tensor& tensor,
                const std::string& file) {
  const auto span = tensor.has_data() ? tensor.storage()->source_span() : std::nullopt;
  ballast::TensorStats stats;
  if (tensor.has_data()) stats = ballast::stats(tensor);
  if (session.json) {
    Json values = Json::array();
    for (const double value : first_values(tensor)) values.push_back(number_or_null(value));
    Json object = {{"schema", 1},
                   {"file", file},
                   {"name", name},
                   {"dtype", ballast::info(tensor.dtype()).code},
                   {"shape", shape_array(tensor.shape())},
                   {"bytes", tensor.size_bytes()},
                   {"offset", span ? Json(span->offset + tensor.bit_offset() / 8) : Json(nullptr)},
                   {"min", number_or_null(stats.min)},
                   {"max", number_or_null(stats.max)},
                   {"mean", number_or_null(stats.mean)},
                   {"std", number_or_null(stats.std)},
                   {"nan", stats.nan},
                   {"inf", stats.inf},
                   {"zeros", stats.zeros}};
    object["values"] = std::move(values);
    write_document(session.out, object);
    return kFine;
  }
  session.out.line(session.stdout_terminal.paint(ballast::display(name), Style::bold));
  Table table({{""}, {""}});
  table.add({"dtype", std::string(ballast::info(tensor.dtype()).code)});
  table.add({"shape", to_string(tensor.shape())});
  table.add(
      {"size", fmt::format("{} ({} bytes)", human_bytes(tensor.size_bytes()), grouped(tensor.size_bytes()))});
  if (!tensor.is_contiguous()) table.add({"strides", to_string(tensor.strides())});
  if (span) table.add({"offset", grouped(span->offset + tensor.bit_offset() / 8)});
  if (!tensor.has_data()) table.add({"data", "none in the file (shape only)"});
  if (const std::string values = preview(tensor); !values.empty()) table.add({"values", values});
  if (stats.finite() > 0) {
    table.add({"range", fmt::format("{:.6g} to {:.6g}", stats.min, stats.max)});
    table.add({"mean, std", fmt::format("{:.6g}, {:.6g}", stats.mean, stats.std)});
  }
  if (stats.nan + stats.inf > 0)
    table.add({"not finite",
               {fmt::format("{} NaN, {} infinite", grouped(stats.nan), grouped(stats.inf)), Style::red}});
  table.print(session.out, session.stdout_terminal, "  ", false);
  return kFine;
}

void show_summary(Session& session, const ShowOptions& options, const ballast::Checkpoint& checkpoint) {
  const Terminal& terminal = session.stdout_terminal;
  const std::uint64_t size = size_of_files(options.file, checkpoint);
  session.out.line(terminal.paint(ballast::display(options.file), Style::bold));
  Table table({{""}, {""}});
  table.add({"format", std::string(checkpoint.format.name())});
  table.add({"size", fmt::format("{} ({} bytes)", human_bytes(size), grouped(size))});
  table.add({"tensors", totals_of(rows_of(checkpoint)).text()});
  bool first = true;
  for (const auto& [key, value] : checkpoint.metadata.value_or(ballast::Metadata())) {
    table.add(
        {first ? "metadata" : "", fmt::format("{} = {}", ballast::display(key), ballast::display(value))});
    first = false;
  }
  const std::vector<ballast::Tie> ties = ballast::ties(checkpoint);
  for (std::size_t i = 0; i < std::min(ties.size(), kTiesShown); ++i)
    table.add({i == 0 ? "ties" : "", fmt::format("{} = {}", ballast::display(checkpoint[ties[i].tensor].name),
                                                 ballast::display(checkpoint[ties[i].first].name))});
  if (ties.size() > kTiesShown)
    table.add({"", fmt::format("and {} more", grouped(ties.size() - kTiesShown))});
  for (std::size_t i = 0; i < checkpoint.notes.size(); ++i)
    table.add({i == 0 ? "notes" : "", ballast::display(checkpoint.notes[i], 4096)});
  table.print(session.out, terminal, "  ", false);
}

void write_file(Session& session, const ShowOptions& options, const ballast::Checkpoint& checkpoint) {
  const Totals totals = totals_of(rows_of(checkpoint));
  JsonStream json(session.out);
  json.begin_object()
      .member("schema", 1)
      .member("file", options.file)
      .member("format", checkpoint.format.name());
  json.member("file_bytes", size_of_files(options.file, checkpoint)).member("tensors", totals.tensors);
  json.member("parameters", totals.parameters).member("bytes", totals.bytes);
  write_metadata(json.key("metadata"), checkpoint.metadata.value_or(ballast::Metadata()));
  json.key("ties").begin_object();
  for (const ballast::Tie& tie : ballast::ties(checkpoint))
    json.member(checkpoint[tie.tensor].name, checkpoint[tie.first].name);
  json.end();
  if (checkpoint.tree) write_values(json, *checkpoint.tree, "", limits_of(options));
  json.member("notes", checkpoint.notes);
  json.finish();
}

int show_file(Session& session, const ShowOptions& options, const ballast::Checkpoint& checkpoint) {
  if (session.json) {
    write_file(session, options, checkpoint);
    return kFine;
  }
  show_summary(session, options, checkpoint);
  if (!checkpoint.tree) return kFine;
  session.out.line("");
  print_values(session.out, session.stdout_terminal, *checkpoint.tree, limits_of(options));
  return kFine;
}

int show_value(Session& session, const ShowOptions& options, const ballast::Value& value) {
  if (value.kind() == ballast::Kind::tensor)
    return show_tensor(session, options.path, value.as_tensor(), options.file);
  if (session.json) {
    JsonStream json(session.out);
    json.begin_object().member("schema", 1).member("file", options.file).member("path", options.path);
    write_values(json, value, options.path, limits_of(options));
    json.finish();
    return kFine;
  }
  print_values(session.out, session.stdout_terminal, value, limits_of(options));
  return kFine;
}

// A tensor's name nearly right is the likeliest; else the library says how far the path leads.
[[noreturn]] void refuse_path(const ShowOptions& options, const ballast::Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const ballast::Entry entry : checkpoint) names.emplace_back(entry.name);
  const std::string_view near = nearest(options.path, names);
  if (near.empty() && checkpoint.tree) static_cast<void>(checkpoint.value(options.path));
  fail(ballast::Errc::not_found, ballast::display(options.file), "nothing at {}; {}",
       ballast::quoted(options.path),
       near.empty() ? "'ballast ls' has the names" : fmt::format("did you mean {}?", ballast::quoted(near)));
}

// A folder of names: what `ls --include '^path\.'` would list.
int show_prefix(Session& session, const ShowOptions& options, const ballast::Checkpoint& checkpoint) {
  std::vector<Row> rows = rows_of(checkpoint);
  std::erase_if(rows, [&](const Row& row) { return !row.name.starts_with(options.path + '.'); });
  if (rows.empty()) refuse_path(options, checkpoint);
  if (session.json) {
    JsonStream json(session.out);
    json.begin_object().member("schema", 1).member("file", options.file).member("path", options.path);
    json.key("tensors").begin_rows();
    for (const Row& row : rows) {
      json.begin_object().member("name", row.name).member("dtype", ballast::info(row.dtype).code);
      json.member("shape", row.shape).member("bytes", row.bytes).end();
    }
    json.finish();
    return kFine;
  }
  Table table({{"NAME"}, {"DTYPE"}, {"SHAPE"}, {"SIZE", Align::right}});
  table.stream(session.out, session.stdout_terminal);
  for (const Row& row : rows) {
    table.add({ballast::display(row.name),
               {ballast::info(row.dtype).code, Style::cyan},
               to_string(row.shape),
               human_bytes(row.bytes)});
  }
  table.print(session.out, session.stdout_terminal);
  session.out.line(session.stdout_terminal.paint(totals_of(rows).text(), Style::bold));
  return kFine;
}

int show(Session& session, const ShowOptions& options) {
  const ballast::Checkpoint checkpoint = session.open(options.file, {.inert = options.inert});
  if (options.path.empty()) return show_file(session, options, checkpoint);
  if (checkpoint.contains(options.path))
    return show_tensor(session, options.path, checkpoint.tensor(options.path), options.file);
  if (checkpoint.tree) {
    if (const auto value = checkpoint.tree->find_path(options.path))
      return show_value(session, options, *value);
  }
  return show_prefix(session, options, checkpoint);
}

}  // namespace

void add_show(CLI::App& app, Session& session) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App& command = add_command(app, session, "show",
                                  "show format, metadata and everything else a file holds besides tensors",
                                  "  ballast show model.safetensors\n"
                                  "  ballast show checkpoint.pt optimizer.param_groups.0.lr\n"
                                  "  ballast show model.safetensors encoder.layers.0.norm.weight");
  command.add_option("FILE", options->file, "A checkpoint of any format")->required();
  command.add_option("PATH", options->path, "A tensor, or a dotted path into the saved objects");
  command.add_option("--depth", options->limits.depth, "Levels of the object tree to show (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000));
  command.add_flag("-a,--all", options->limits.all, "Every item of long containers, all levels");
  add_inert_option(command, options->inert);
  command.callback(
      [&session, options] { session.run = [&session, options] { return show(session, *options); }; });
}

}  // namespace tool
