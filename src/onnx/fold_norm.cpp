// SPDX-License-Identifier: Apache-2.0
#include "onnx/fold_norm.h"

#include <algorithm>

#include "base/key_path.h"
#include "nn/fold.h"
#include "ops/operations.h"

namespace ballast::onnx {
namespace {

class NormFolder {
 public:
  explicit NormFolder(Graph& graph)
      : graph_(graph), uses_(graph.values.size(), 0), maker_(graph.values.size(), -1) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::int64_t id : graph.nodes[i].inputs)
        if (id >= 0) ++uses_[static_cast<std::size_t>(id)];
      for (const std::int64_t id : graph.nodes[i].outputs)
        if (id >= 0) maker_[static_cast<std::size_t>(id)] = static_cast<std::int64_t>(i);
    }
    for (const std::int64_t id : graph.outputs) ++uses_[static_cast<std::size_t>(id)];
  }

  void run() {
    for (GraphNode& node : graph_.nodes)
      if (node.operation == &operations::batch_norm) fold(node);
    graph_.nodes.erase(std::remove_if(graph_.nodes.begin(), graph_.nodes.end(),
                                      [](const GraphNode& node) { return node.operation == nullptr; }),
                       graph_.nodes.end());
  }

 private:
  [[nodiscard]] const GraphValue& value(std::int64_t id) const {
    return graph_.values[static_cast<std::size_t>(id)];
  }

  // Undefined when it was left out; nullopt when it is not a parameter's own value.
  [[nodiscard]] std::optional<Tensor> parameter(const GraphNode& node, std::size_t i) const {
    if (i >= node.inputs.size() || node.inputs[i] < 0) return Tensor();
    const GraphValue& one = value(node.inputs[i]);
    const bool fixed = one.kind == GraphValue::Kind::parameter || one.kind == GraphValue::Kind::constant;
    return fixed ? std::optional(one.tensor) : std::nullopt;
  }

  std::int64_t add(const GraphNode& layer, std::size_t i, const char* field, const Tensor& tensor) {
    std::string name =
        layer.inputs.size() > i && layer.inputs[i] >= 0 ? value(layer.inputs[i]).name : std::string();
    if (name.empty()) {
      name = std::string(key_path::before_last(value(layer.inputs[1]).name)) + field;
    }
    if (layer.operation == &operations::linear && i == 1)
      name += "_folded";  // [in, out], not as PyTorch has it
    GraphValue folded{
        .kind = GraphValue::Kind::constant, .name = name, .dtype = tensor.dtype(), .shape = tensor.shape()};
    for (const std::int64_t dim : tensor.shape()) {
      SizeExpr size;
      size.constant = dim;
      folded.sizes.push_back(size);
    }
    folded.known = true;
    folded.tensor = tensor;
    graph_.values.push_back(std::move(folded));
    uses_.push_back(1);
    maker_.push_back(-1);
    return static_cast<std::int64_t>(graph_.values.size() - 1);
  }

  static void look_elsewhere(SizeExpr& size, std::int64_t from, std::int64_t to) {
    for (SizeExpr::Term& term : size.terms) {
      for (SizeExpr::Dim& dim : term.dims)
        if (dim.value == from && dim.name.empty()) dim.value = to;
      for (SizeExpr& part : term.rounded) look_elsewhere(part, from, to);
    }
  }

  // Sizes taken from a value that is no more are those of the norm's result.
  void look_elsewhere(std::int64_t from, std::int64_t to) {
    for (GraphNode& node : graph_.nodes)
      for (SymbolicAttribute& one : node.symbolic) look_elsewhere(one.size, from, to);
    for (GraphValue& one : graph_.values) {
      look_elsewhere(one.number, from, to);
      for (SizeExpr& size : one.sizes) look_elsewhere(size, from, to);
    }
  }

  void fold(GraphNode& norm) {
    const std::int64_t between = norm.inputs[0];
    const std::int64_t made_by = maker_[static_cast<std::size_t>(between)];
    if (made_by < 0 || uses_[static_cast<std::size_t>(between)] != 1) return;
    GraphNode& layer = graph_.nodes[static_cast<std::size_t>(made_by)];
    const bool turned = layer.operation == &operations::conv_transpose;
    if (layer.operation != &operations::conv && layer.operation != &operations::linear && !turned) return;
    // A linear map's outputs are its last dimension, a norm's channels the second.
    if (layer.operation == &operations::linear && value(between).shape.size() != 2) return;
    const auto weight = parameter(layer, 1);
    const auto bias = parameter(layer, 2);
    const auto mean = parameter(norm, 1);
    const auto variance = parameter(norm, 2);
    const auto gamma = parameter(norm, 3);
    const auto beta = parameter(norm, 4);
    if (!weight || !bias || !mean || !variance || !gamma || !beta) return;
    const std::int64_t groups = turned ? std::get<std::int64_t>(layer.attributes.back().value) : 1;
    const nn::NormToFold stats{*mean, *variance, *gamma, *beta, std::get<double>(norm.attributes[0].value)};
    const nn::FoldedLayer folded = nn::fold_norm(
        *weight, *bias, stats, layer.operation == &operations::conv ? std::size_t{0} : 1, groups);
    layer.inputs.resize(3, -1);
    const std::int64_t new_weight = add(layer, 1, "weight", folded.weight);
    const std::int64_t new_bias = add(layer, 2, "bias", folded.bias);
    layer.inputs[1] = new_weight;
    layer.inputs[2] = new_bias;
    layer.outputs = norm.outputs;
    maker_[static_cast<std::size_t>(norm.outputs[0])] = made_by;
    look_elsewhere(between, norm.outputs[0]);
    norm = {};
  }

  Graph& graph_;
  std::vector<std::size_t> uses_;
  std::vector<std::int64_t> maker_;
};

}  // namespace

void fold_batch_norms(Graph& graph) {
  NormFolder(graph).run();
}

}  // namespace ballast::onnx
