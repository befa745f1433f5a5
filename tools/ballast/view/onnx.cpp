// SPDX-License-Identifier: Apache-2.0
// files/F/onnx: what an ONNX model takes, gives and is made of; its nodes as a list.
#include <fmt/format.h>

#include "ballast/error.h"
#include "ballast/onnx_file.h"
#include "view/app.h"

namespace tool::view {
namespace {

namespace onnx = ballast::onnx_file;

Json texts_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(ballast::display(text));
  return list;
}

Json values_of(const std::vector<onnx::ValueInfo>& values) {
  Json list = Json::array();
  for (const onnx::ValueInfo& value : values) {
    Json shape = nullptr;
    if (value.shape) {
      shape = Json::array();
      for (const onnx::Dimension& dim : *value.shape)
        shape.push_back(dim.size             ? Json(*dim.size)
                        : dim.symbol.empty() ? Json(nullptr)
                                             : Json(ballast::display(dim.symbol)));
    }
    list.push_back(
        {{"name", ballast::display(value.name)}, {"type", value.type}, {"shape", std::move(shape)}});
  }
  return list;
}

std::string operator_name(const std::string& domain, const std::string& name) {
  return domain.empty() ? ballast::display(name) : ballast::display(domain) + ":" + ballast::display(name);
}

// The list is of the main graph; what the file says of itself counts the bodies of If and Loop too.
std::uint64_t listed_nodes(const std::string& path, const onnx::Info& info) {
  return info.subgraphs == 0 && info.functions.empty() ? info.nodes
                                                       : onnx::read_nodes(path, 0, SIZE_MAX).size();
}

}  // namespace

Response get_onnx(const Call& call) {
  Document& document = call.document();
  if (document.checkpoint().format != ballast::formats::onnx)
    throw Refused{404, "not-found", "this is no ONNX model"};
  const onnx::Info info = onnx::read_info(document.path());
  const Page page = page_of_query(call.query);
  Json operators = Json::array();
  for (const onnx::OperatorCount& one : info.operators)
    operators.push_back({{"op", operator_name(one.domain, one.name)}, {"count", one.count}});
  Json nodes = Json::array();
  for (const onnx::Node& node : onnx::read_nodes(document.path(), page.offset, page.limit)) {
    nodes.push_back({{"name", ballast::display(node.name)},
                     {"op", operator_name(node.domain, node.op)},
                     {"inputs", texts_of(node.inputs)},
                     {"outputs", texts_of(node.outputs)}});
  }
  Json opsets = Json::object();
  for (const onnx::Opset& opset : info.opsets)
    opsets[opset.domain.empty() ? "ai.onnx" : ballast::display(opset.domain)] = opset.version;
  const std::string producer =
      ballast::display(info.producer_name) + " " + ballast::display(info.producer_version);
  return json_response({{"opset", opsets},
                        {"producer", producer == " " ? "" : producer},
                        {"graph", ballast::display(info.graph_name)},
                        {"inputs", values_of(info.inputs)},
                        {"outputs", values_of(info.outputs)},
                        {"operators", std::move(operators)},
                        {"total", listed_nodes(document.path(), info)},
                        {"nodes", std::move(nodes)}});
}

}  // namespace tool::view
