// SPDX-License-Identifier: Apache-2.0
// ballast onnx info: what an ONNX model is. What goes in and comes out, which operators it needs, and where
// its weights lie. Only the structure is read.
#include "ballast/error.h"
#include "ballast/onnx_file.h"
#include "commands.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

namespace onnx = ballast::onnx_file;

struct OnnxOptions {
  std::string action;
  std::vector<std::string> files;
};

std::string domain_text(const std::string& domain) {
  return domain.empty() ? "ai.onnx" : ballast::display(domain);
}

// "[batch, 3, ?]"
std::string shape_text(const onnx::ValueInfo& value) {
  if (!value.shape) return "any shape";
  std::string text;
  for (const onnx::Dimension& dim : *value.shape) {
    text += text.empty() ? "" : ", ";
    text += dim.size ? std::to_string(*dim.size) : dim.symbol.empty() ? "?" : ballast::display(dim.symbol);
  }
  return "[" + text + "]";
}

Json shape_json(const onnx::ValueInfo& value) {
  if (!value.shape) return nullptr;
  Json dims = Json::array();
  for (const onnx::Dimension& dim : *value.shape) {
    if (dim.size)
      dims.push_back(*dim.size);
    else
      dims.push_back(dim.symbol.empty() ? Json(nullptr) : Json(dim.symbol));
  }
  return dims;
}

void write_values(JsonStream& json, const std::vector<onnx::ValueInfo>& values) {
  json.begin_rows();
  for (const onnx::ValueInfo& value : values) {
    json.begin_object().member("name", value.name);
    json.member("type", value.type.empty() ? Json(nullptr) : Json(value.type));
    json.member("shape", shape_json(value)).end();
  }
  json.end();
}

void write_operators(JsonStream& json, const std::vector<onnx::OperatorCount>& operators, const char* count) {
  json.begin_rows();
  for (const onnx::OperatorCount& one : operators)
    json.begin_object().member("domain", one.domain).member("name", one.name).member(count, one.count).end();
  json.end();
}

Json count_json(const onnx::TensorCount& count) {
  return {{"tensors", count.tensors}, {"bytes", count.bytes}};
}

void write_json(JsonStream& json, const onnx::Info& info) {
  json.member("ir_version", info.ir_version).key("producer").begin_object();
  json.member("name", info.producer_name).member("version", info.producer_version).end();
  json.member("domain", info.domain).member("model_version", info.model_version);
  json.member("doc_string", info.doc_string).member("graph", info.graph_name).key("opsets").begin_rows();
  for (const onnx::Opset& opset : info.opsets)
    json.begin_object().member("domain", opset.domain).member("version", opset.version).end();
  json.end();
  write_values(json.key("inputs"), info.inputs);
  write_values(json.key("outputs"), info.outputs);
  json.member("nodes", info.nodes).member("subgraphs", info.subgraphs);
  write_operators(json.key("operators"), info.operators, "count");
  write_operators(json.key("functions"), info.functions, "nodes");
  json.member("initializers", count_json(info.initializers)).member("constants", count_json(info.constants));
  json.member("skipped", info.skipped).key("external_files").begin_rows();
  for (const onnx::ExternalFile& file : info.external_files) {
    json.begin_object().member("location", file.location).member("tensors", file.holds.tensors);
    json.member("bytes", file.holds.bytes);
    json.member("file_bytes", file.file_bytes ? Json(*file.file_bytes) : Json(nullptr)).end();
  }
  write_metadata(json.end().key("metadata"), info.metadata);
}

// Rows of one heading: it stands in front of the first alone.
class Section {
 public:
  Section(Table& table, std::string heading) : table_(table), heading_(std::move(heading)) {}

  void add(Cell text) { table_.add({std::exchange(heading_, {}), std::move(text)}); }

 private:
  Table& table_;
  std::string heading_;
};

void add_values(Table& table, const std::string& heading, const std::vector<onnx::ValueInfo>& values) {
  Section section(table, heading);
  std::size_t width = 0;
  for (const onnx::ValueInfo& value : values)
    width = std::max(width, std::min<std::size_t>(screen_width(ballast::display(value.name)), 40));
  for (const onnx::ValueInfo& value : values) {
    std::string name = ballast::display(value.name);
    name.append(width - std::min(width, screen_width(name)), ' ');
    section.add(fmt::format("{}  {} {}", name, value.type.empty() ? "?" : value.type, shape_text(value)));
  }
}

std::string counts_text(const onnx::Info& info) {
  std::string text = fmt::format("{}, {}", counted(info.initializers.tensors, "initializer"),
                                 human_bytes(info.initializers.bytes));
  if (info.constants.tensors > 0)
    text += fmt::format("; {}, {}", counted(info.constants.tensors, "constant"),
                        human_bytes(info.constants.bytes));
  if (info.skipped > 0) text += fmt::format("; {} of a type Ballast does not read", grouped(info.skipped));
  return text;
}

std::string operators_text(const std::vector<onnx::OperatorCount>& operators) {
  std::string text;
  for (const onnx::OperatorCount& one : operators) {
    text += text.empty() ? "" : ", ";
    if (!one.domain.empty()) text += ballast::display(one.domain) + ":";
    text += fmt::format("{} {}", ballast::display(one.name), grouped(one.count));
  }
  return text;
}

void add_weights(Table& table, const onnx::Info& info) {
  table.add({"weights", counts_text(info)});
  Section files(table, "external");
  for (const onnx::ExternalFile& file : info.external_files) {
    std::string text = fmt::format("{}  {}, {}", ballast::display(file.location),
                                   counted(file.holds.tensors, "tensor"), human_bytes(file.holds.bytes));
    if (file.file_bytes)
      files.add(text);
    else
      files.add({text + " (not there)", Style::red});
  }
}

void print(Session& session, const std::string& path, const onnx::Info& info) {
  session.out.line(session.stdout_terminal.paint(ballast::display(path), Style::bold));
  Table table({{""}, {""}});
  std::string opsets;
  for (const onnx::Opset& opset : info.opsets)
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain_text(opset.domain), opset.version);
  table.add({"opset", opsets.empty() ? "not said" : opsets});
  table.add({"ir version", std::to_string(info.ir_version)});
  if (!info.producer_name.empty())
    table.add(
        {"producer", ballast::display(info.producer_name) + ' ' + ballast::display(info.producer_version)});
  if (!info.domain.empty() || info.model_version != 0)
    table.add({"model", fmt::format("{} version {}", ballast::display(info.domain), info.model_version)});
  std::string graph = fmt::format("{}, {}", ballast::display(info.graph_name), counted(info.nodes, "node"));
  if (info.subgraphs > 0) graph += ", " + counted(info.subgraphs, "subgraph");
  table.add({"graph", graph});
  if (!info.doc_string.empty()) table.add({"about", ballast::display(info.doc_string)});
  add_values(table, "inputs", info.inputs);
  add_values(table, "outputs", info.outputs);
  add_weights(table, info);
  if (!info.operators.empty()) table.add({"operators", operators_text(info.operators)});
  if (!info.functions.empty()) table.add({"functions", operators_text(info.functions)});
  Section metadata(table, "metadata");
  for (const auto& [key, value] : info.metadata)
    metadata.add(fmt::format("{} = {}", ballast::display(key), ballast::display(value)));
  table.print(session.out, session.stdout_terminal, "  ", false);
}

int run(Session& session, const OnnxOptions& options) {
  return for_each_file(session, options.files, [&](const std::string& path, JsonStream& json) {
    session.about_to_read(path);
    const onnx::Info info = onnx::read_info(path);
    if (session.json)
      write_json(json, info);
    else
      print(session, path, info);
    return kFine;
  });
}

}  // namespace

void add_onnx(CLI::App& app, Session& session) {
  auto options = std::make_shared<OnnxOptions>();
  CLI::App& command = add_command(app, session, "onnx", "tell what an ONNX model takes, gives and needs",
                                  "  ballast onnx info model.onnx\n"
                                  "  ballast onnx info model.onnx --json | jq .inputs\n"
                                  "  ballast ls model.onnx");
  command.add_option("ACTION", options->action, "info")->required()->check(CLI::IsMember({"info"}));
  command.add_option("FILE", options->files, "ONNX models")->required();
  command.callback(
      [&session, options] { session.run = [&session, options] { return run(session, *options); }; });
}

}  // namespace tool
