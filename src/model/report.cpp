// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include "ballast/error.h"
#include "ballast/load.h"
#include "base/fail.h"
#include "base/json_writer.h"

namespace ballast {
namespace {

std::string headline(const LoadReport& report) {
  const std::size_t all =
      report.applied.size() + report.missing.size() + report.mismatched.size() + report.initialized.size();
  std::string text = fmt::format("{}{} of {} tensors {}", report.failed ? "nothing was loaded: " : "",
                                 report.applied.size(), all, report.failed ? "fit" : "loaded");
  if (!report.file.empty()) text += (report.failed ? " " : " from ") + quoted(report.file);
  const std::pair<const char*, std::size_t> counts[] = {
      {"missing", report.missing.size()},        {"mismatched", report.mismatched.size()},
      {"unused", report.unused.size()},          {"skipped", report.skipped.size()},
      {"renamed", report.renamed.size()},        {"adapted", report.adapted.size()},
      {"moved", report.reindexed.size()},        {"cast", report.cast.size()},
      {"initialised", report.initialized.size()}};
  for (const auto& [what, count] : counts) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  }
  return text + "\n";
}

template <class List, class Line>
void append_list(std::string& text, const char* title, const List& list, std::size_t most, Line&& line) {
  if (list.empty()) return;
  text += fmt::format("{}:\n", title);
  for (std::size_t i = 0; i < list.size() && i < most; ++i) text += "  " + line(list[i]) + "\n";
  if (list.size() > most) text += fmt::format("  … and {} more\n", list.size() - most);
}

std::string missing_line(const LoadReport::Item& item) {
  std::string line = display(item.target);
  if (item.source != item.target) line += fmt::format(" (looked for {})", quoted(item.source));
  return line + item.detail;
}

std::string mismatch_line(const LoadReport::Mismatch& item) {
  std::string line = display(item.target);
  if (!item.source.empty() && item.source != item.target) line += " from " + quoted(item.source);
  if (item.file_shape != item.model_shape)
    line += fmt::format(": file {}, model {}", to_string(item.file_shape), to_string(item.model_shape));
  return line + ": " + item.reason;
}

std::string cpp_string(std::string_view text) {
  if (text.find_first_of("\"\\") == text.npos) return '"' + display(text) + '"';
  return "R\"(" + display(text) + ")\"";
}

void write_items(JsonWriter& json, std::string_view name, const std::vector<LoadReport::Item>& items) {
  json.key(name).begin_array();
  for (const LoadReport::Item& item : items) {
    json.begin_object()
        .member("source", item.source)
        .member("target", item.target)
        .member("detail", item.detail)
        .end_object();
  }
  json.end_array();
}

void write_shape(JsonWriter& json, std::string_view name, const Shape& shape) {
  json.key(name).begin_array();
  for (const std::int64_t size : shape) json.value(size);
  json.end_array();
}

}  // namespace

std::string LoadReport::text(std::size_t most) const {
  std::string text = headline(*this);
  append_list(text, "missing", missing, most, missing_line);
  append_list(text, "mismatched", mismatched, most, mismatch_line);
  append_list(text, "unused", unused, most,
              [](const Item& item) { return display(item.source) + " " + item.detail; });
  append_list(text, "moved", reindexed, most,
              [](const Item& item) { return display(item.source) + " → " + display(item.target); });
  const auto lossy = [](const Item& item) { return item.detail.find("infinite") != item.detail.npos; };
  std::vector<Item> lost;
  for (const Item& item : cast) {
    if (lossy(item)) lost.push_back(item);
  }
  append_list(text, "cast with loss", lost, most,
              [](const Item& item) { return display(item.target) + " " + item.detail; });
  append_list(text, "notes", notes, most, [](const std::string& note) { return note; });
  append_list(text, "rename rules that would find some of the missing", suggestions, most,
              [](const RenameRule& rule) {
                return "{" + cpp_string(rule.match) + ", " + cpp_string(rule.to) + "},";
              });
  return text;
}

std::string LoadReport::to_json() const {
  JsonWriter json;
  json.begin_object()
      .member("schema", 1)
      .member("file", file)
      .member("complete", complete())
      .member("failed", failed);
  write_items(json, "applied", applied);
  write_items(json, "missing", missing);
  write_items(json, "unused", unused);
  json.key("mismatched").begin_array();
  for (const Mismatch& item : mismatched) {
    json.begin_object().member("source", item.source).member("target", item.target);
    write_shape(json, "file_shape", item.file_shape);
    write_shape(json, "model_shape", item.model_shape);
    json.member("reason", item.reason).end_object();
  }
  json.end_array();
  write_items(json, "skipped", skipped);
  write_items(json, "renamed", renamed);
  write_items(json, "adapted", adapted);
  write_items(json, "reindexed", reindexed);
  write_items(json, "cast", cast);
  json.member("rounded", rounded).member("overflowed", overflowed);
  write_items(json, "initialized", initialized);
  json.key("notes").begin_array();
  for (const std::string& note : notes) json.value(note);
  json.end_array().key("suggestions").begin_array();
  for (const RenameRule& rule : suggestions)
    json.begin_object().member("match", rule.match).member("to", rule.to).end_object();
  json.end_array().end_object();
  return std::move(json).text();
}

std::ostream& operator<<(std::ostream& out, const LoadReport& report) {
  return out << report.text();
}

LoadError::LoadError(LoadReport report)
    : Error(Errc::load_failed, display(report.file),
            "the model and the checkpoint do not fit\n" + report.text()),
      report_(std::make_shared<const LoadReport>(std::move(report))) {}

}  // namespace ballast
