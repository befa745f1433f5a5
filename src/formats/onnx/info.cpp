// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "ballast/error.h"
#include "ballast/onnx_file.h"
#include "base/fail.h"
#include "containers/magic.h"
#include "formats/encrypted.h"
#include "formats/format_table.h"
#include "formats/onnx/external.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/model.h"
#include "formats/onnx/wire.h"

namespace ballast::onnx_file {

namespace {

std::shared_ptr<const ByteSource> open_model(const std::string& path) {
  auto file = open_content(path, {.io = Io::read}).content;
  if (format_of(*file) != formats::onnx) {
    const auto head = file->read(0, std::min<std::uint64_t>(file->size(), containers::kMagicBytes));
    const std::string_view likely = containers::what_is_it(head);
    fail(Errc::unknown_format, display(path), "is no ONNX model{}{}", likely.empty() ? "" : " but ", likely);
  }
  return file;
}

Node listed_node(WireReader& wire, Range message) {
  Node node;
  Field field;
  const auto text = [&] { return wire.text(field, "a node", kMaxTextBytes); };
  while (wire.next(message, field)) {
    if (field.number == node_proto::name) node.name = text();
    if (field.number == node_proto::domain) node.domain = text();
    if (field.number == node_proto::op_type) node.op = text();
    if (field.number == node_proto::input) node.inputs.push_back(text());
    if (field.number == node_proto::output) node.outputs.push_back(text());
  }
  return node;
}

}  // namespace

Info read_info(const std::string& path) {
  const auto file = open_model(path);
  const TensorSink sink{.tensor = [](const TensorDescription&, Origin) {},
                        .sparse = [](const SparseDescription&, Origin) {}};
  Info info = read_model(*file, sink);
  for (ExternalFile& external : info.external_files) {
    const std::string found = locate(path, external.location);
    std::error_code error;
    const std::uintmax_t size = found.empty() ? 0 : std::filesystem::file_size(found, error);
    if (!found.empty() && !error) external.file_bytes = size;
  }
  return info;
}

std::vector<Node> read_nodes(const std::string& path, std::uint64_t first, std::size_t most) {
  const auto file = open_model(path);
  WireReader wire(*file);
  std::vector<Node> nodes;
  std::uint64_t position = 0;
  Field part;
  for (Range model = wire.whole(); wire.next(model, part);) {
    if (part.number != model_proto::graph) continue;
    Field field;
    for (Range graph = wire.message(part, "graph"); nodes.size() < most && wire.next(graph, field);) {
      if (field.number == graph_proto::node && position++ >= first)
        nodes.push_back(listed_node(wire, wire.message(field, "node")));
    }
  }
  return nodes;
}

}  // namespace ballast::onnx_file
