// SPDX-License-Identifier: Apache-2.0
#include "diff_print.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ballast/error.h"
#include "diff_layers.h"
#include "diff_rows.h"
#include "rows.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

using ballast::Change;
using ballast::TensorDiff;

constexpr std::array kChanges = {Change::equal,  Change::within, Change::values,
                                 Change::dtype,  Change::shape,  Change::renamed,
                                 Change::only_a, Change::only_b, Change::layout};

std::string figure(double value) {
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : "inf";
}

std::string kind_of(ballast::DType dtype, ballast::ShapeView shape) {
  return fmt::format("{} {}", ballast::info(dtype).code, to_string(shape));
}

bool has_distance(const TensorDiff& item) {
  const bool is_compared =
      item.change == Change::within || item.change == Change::values || item.change == Change::dtype;
  return is_compared && item.distance.count > 0;
}

// Where NaN begins: "A [0, 1], B [3, 2]".
std::string first_nan(const TensorDiff& item) {
  const ballast::Distance& d = item.distance;
  std::string text;
  if (d.nan_a) text = "A " + index_text(*d.nan_a, item.shape_a, d.count);
  if (d.nan_b) text += (text.empty() ? "B " : ", B ") + index_text(*d.nan_b, item.shape_b, d.count);
  return text;
}

bool shows_nan(const DiffRow& row) {
  return has_distance(row.item) && (row.item.distance.nan_a || row.item.distance.nan_b);
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
          figure(d.max_abs),
          figure(d.max_rel),
          d.rel_l2 ? figure(*d.rel_l2) : "-",
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

// FIRST NAN has a column where there is one.
Table table_of(const std::vector<DiffRow>& rows) {
  std::vector<Column> columns = {{"TENSOR"},
                                 {"CHANGE"},
                                 {"WHAT"},
                                 {"DIFFERING", Align::right, true},
                                 {"MAX ABS", Align::right},
                                 {"MAX REL", Align::right, true},
                                 {"REL L2", Align::right, true},
                                 {"ULP", Align::right, true},
                                 {"COSINE", Align::right, true}};
  if (std::ranges::any_of(rows, shows_nan))
    columns.insert(columns.begin() + 3, {"FIRST NAN", Align::left, true});
  return Table(std::move(columns));
}

void print_tensors(Session& session, const DiffView& view, const ballast::DiffReport& report) {
  const std::size_t count = report.tensors.size() - (view.all ? 0 : report.count(Change::equal));
  const bool fold = view.fold.holds(session, count);
  const std::vector<DiffRow> rows = diff_rows(report.tensors, view.all, fold);
  Table table = table_of(rows);
  table.stream(session.out, session.stdout_terminal);
  const bool has_nan = std::ranges::any_of(rows, shows_nan);
  for (const DiffRow& row : rows) {
    std::vector<Cell> cells = {shown_name(row, session.stdout_terminal),
                               {name(row.item.change), style_of(row.item.change)},
                               description(row.item)};
    if (has_nan) cells.emplace_back(shows_nan(row) ? first_nan(row.item) : "");
    for (const std::string& text : figures(row.item)) cells.emplace_back(text);
    table.add(cells);
  }
  if (!table.empty()) table.print(session.out, session.stdout_terminal);
  session.out.line(session.stdout_terminal.paint(summary(report), Style::bold));
  session.out.flush();
  if (rows.size() < count) view.fold.say(session);
  say_left_out(session, table);
}

std::vector<LayerDiff> layer_rows(const DiffView& view, const ballast::DiffReport& report, bool fold) {
  return diff_layers(report.tensors,
                     {.depth = view.depth, .all = view.all, .fold = fold, .order = view.sort});
}

std::string shown_name(const LayerDiff& layer, const Terminal& terminal) {
  return (layer.name.empty() ? "(no layer)" : ballast::display(layer.name)) + times(layer.layers, terminal);
}

// TENSORS, DIFFERING, MAX ABS, MAX REL, REL L2.
std::array<std::string, 5> figures(const LayerDiff& layer) {
  const auto of = [](std::uint64_t some, std::uint64_t all) {
    return fmt::format("{} of {}", grouped(some), grouped(all));
  };
  const bool compared = layer.values > 0;
  const std::optional<double> length = layer.rel_l2();
  return {of(layer.changed, layer.tensors), compared ? of(layer.differing, layer.values) : "",
          compared ? figure(layer.max_abs) : "", compared ? figure(layer.max_rel) : "",
          !compared ? ""
          : length  ? figure(*length)
                    : "-"};
}

void print_layers(Session& session, const DiffView& view, const ballast::DiffReport& report) {
  std::vector<LayerDiff> layers = layer_rows(view, report, false);
  const std::size_t count = layers.size();
  if (view.fold.holds(session, count)) layers = layer_rows(view, report, true);
  Table table({{"LAYER"},
               {"CHANGED", Align::right},
               {"DIFFERING", Align::right, true},
               {"MAX ABS", Align::right},
               {"MAX REL", Align::right, true},
               {"REL L2", Align::right}});
  table.stream(session.out, session.stdout_terminal);
  for (const LayerDiff& layer : layers) {
    std::vector<Cell> cells = {shown_name(layer, session.stdout_terminal)};
    for (const std::string& text : figures(layer)) cells.emplace_back(text);
    table.add(cells);
  }
  if (!table.empty()) table.print(session.out, session.stdout_terminal);
  session.out.line(session.stdout_terminal.paint(summary(report), Style::bold));
  session.out.flush();
  if (layers.size() < count) view.fold.say(session);
  say_left_out(session, table);
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

void write_markdown_tensors(Session& session, const DiffView& view, const ballast::DiffReport& report) {
  session.out.write(
      "| tensor | change | what | differing | max abs | max rel | rel L2 | ULP | cosine "
      "|\n|---|---|---|--:|--:|--:|--:|--:|--:|\n");
  for (const DiffRow& row : diff_rows(report.tensors, view.all, view.fold.fold)) {
    const auto f = figures(row.item);
    session.out.print("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                      cell(shown_name(row, session.stdout_terminal)), name(row.item.change),
                      cell(description(row.item)), f[0], f[1], f[2], f[3], f[4], f[5]);
  }
}

void write_markdown_layers(Session& session, const DiffView& view, const ballast::DiffReport& report) {
  session.out.write(
      "| layer | changed | differing | max abs | max rel | rel L2 |\n|---|--:|--:|--:|--:|--:|\n");
  for (const LayerDiff& layer : layer_rows(view, report, view.fold.fold)) {
    const auto f = figures(layer);
    session.out.print("| {} | {} | {} | {} | {} | {} |\n", cell(shown_name(layer, session.stdout_terminal)),
                      f[0], f[1], f[2], f[3], f[4]);
  }
}

void write_distance(JsonStream& json, const ballast::Distance& d) {
  json.member("values", d.count).member("differing", d.differing).member("outside", d.outside);
  if (d.differing > 0) json.member("first", d.first);
  json.member("max_abs", d.max_abs).member("max_rel", d.max_rel);
  json.member("max_ulp", d.max_ulp ? Json(*d.max_ulp) : Json(nullptr));
  json.member("cosine", d.cosine ? Json(*d.cosine) : Json(nullptr));
  json.member("rel_l2", d.rel_l2 ? Json(*d.rel_l2) : Json(nullptr));
  if (d.nan_a) json.member("nan_a", *d.nan_a);
  if (d.nan_b) json.member("nan_b", *d.nan_b);
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

void write_layers(JsonStream& json, const DiffView& view, const ballast::DiffReport& report) {
  json.key("layers").begin_rows();
  for (const LayerDiff& layer : layer_rows(view, report, view.fold.fold)) {
    const std::optional<double> length = layer.rel_l2();
    json.begin_object().member("name", layer.name).member("tensors", layer.tensors);
    json.member("changed", layer.changed).member("values", layer.values);
    json.member("differing", layer.differing);
    json.member("max_abs", layer.max_abs).member("max_rel", layer.max_rel);
    json.member("rel_l2", length ? Json(*length) : Json(nullptr));
    if (layer.layers > 1) json.member("layers", layer.layers);
    json.end();
  }
  json.end();
}

}  // namespace

void print_diff(Session& session, const DiffView& view, const ballast::DiffReport& report) {
  if (view.per_layer)
    print_layers(session, view, report);
  else
    print_tensors(session, view, report);
}

void print_diff_markdown(Session& session, const DiffView& view, const ballast::DiffReport& report) {
  session.out.print("**{}** and **{}**: {}\n\n", cell(ballast::display(view.a)),
                    cell(ballast::display(view.b)), summary(report));
  if (view.per_layer)
    write_markdown_layers(session, view, report);
  else
    write_markdown_tensors(session, view, report);
}

void print_diff_json(Session& session, const DiffView& view, const ballast::DiffReport& report) {
  Json counts = Json::object();
  for (const Change change : kChanges) counts[std::string(name(change))] = report.count(change);
  JsonStream json(session.out);
  json.begin_object().member("schema", 1).member("a", view.a).member("b", view.b);
  json.member("same", report.same()).member("counts", counts).key("tensors").begin_rows();
  for (const TensorDiff& item : report.tensors) write_item(json, item);
  json.end();
  if (view.per_layer) write_layers(json, view, report);
  json.finish();
}

}  // namespace tool
