// SPDX-License-Identifier: Apache-2.0
// A model, read:
//
//   model     ir_version, producer, …, graph, opset_import, metadata_props, training_info, functions
//   graph     nodes, initializers, sparse initializers, inputs, outputs
//   node      op_type, domain, name, inputs, outputs, attributes
//   attribute name, and a number, text, tensor, graph, or a list of one of these
//
// Fields of a message may come in any order, so messages whose parts depend on each other are gone through
// twice; what is inside them is stepped over the first time.
#include "formats/onnx/model.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ballast/error.h"
#include "base/fail.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/names.h"
#include "formats/onnx/sparse.h"
#include "formats/onnx/uses.h"

namespace ballast::onnx_file {
namespace {

constexpr std::uint64_t kPlainNames = std::uint64_t{16} << 20U;

struct Node {
  std::string name;
  std::string op_type;
  std::string domain;
  std::string output;  // the first
};

struct Attribute {
  std::string name;
  bool leads_on = false;  // to tensors or graphs
};

class ModelReader {
 public:
  ModelReader(const ByteSource& source, const TensorSink& sink) : wire_(source), sink_(sink) {}

  Info read() {
    Range rest = wire_.whole();
    Field field;
    bool has_graph = false;
    while (wire_.next(rest, field)) {
      if (field.number == model_proto::graph) {
        if (std::exchange(has_graph, true)) fail(Errc::bad_onnx, wire_.where(), "two graphs");
        read_graph(wire_.message(field, "graph"), {}, 0);
      } else {
        take(field);
      }
    }
    if (!has_graph) fail(Errc::bad_onnx, wire_.where(), "has no graph (not an ONNX model, or cut short?)");
    drop_initialized_inputs();
    list_operators();
    info_.constant_names = uses_.constants();
    return std::move(info_);
  }

 private:
  void take(const Field& field) {
    switch (field.number) {
      case model_proto::ir_version:
        info_.ir_version = static_cast<std::int64_t>(wire_.number(field, "ir_version"));
        return;
      case model_proto::producer_name:
        info_.producer_name = text(field, "producer_name");
        return;
      case model_proto::producer_version:
        info_.producer_version = text(field, "producer_version");
        return;
      case model_proto::domain:
        info_.domain = text(field, "domain");
        return;
      case model_proto::model_version:
        info_.model_version = static_cast<std::int64_t>(wire_.number(field, "model_version"));
        return;
      case model_proto::doc_string:
        info_.doc_string = text(field, "doc_string");
        return;
      case model_proto::opset_import:
        return read_opset(wire_.message(field, "opset_import"));
      case model_proto::metadata_props:
        return read_metadata(wire_.message(field, "metadata_props"));
      case model_proto::training_info:
        return read_training(wire_.message(field, "training_info"));
      case model_proto::functions:
        return read_function(wire_.message(field, "functions"));
      default:
        return;
    }
  }

  // All texts together: a file of nothing else is no model.
  std::string text(const Field& field, std::string_view what) {
    std::string value = wire_.text(field, what, kMaxTextBytes - text_bytes_);
    text_bytes_ += value.size();
    return value;
  }

  void limit(std::uint64_t count, std::uint64_t most, std::string_view what) const {
    if (count > most) fail(Errc::too_many, wire_.where(), "more than {} {}", most, what);
  }

  void read_opset(Range rest) {
    Opset opset;
    Field field;
    while (wire_.next(rest, field)) {
      if (field.number == opset_proto::domain) opset.domain = text(field, "an opset's domain");
      if (field.number == opset_proto::version)
        opset.version = static_cast<std::int64_t>(wire_.number(field, "an opset's version"));
    }
    info_.opsets.push_back(std::move(opset));
    limit(info_.opsets.size(), kMaxListed, "opsets");
  }

  void read_metadata(Range rest) {
    std::string key;
    std::string value;
    Field field;
    while (wire_.next(rest, field)) {
      if (field.number == entry_proto::key) key = text(field, "a key of metadata_props");
      if (field.number == entry_proto::value) value = text(field, "a value of metadata_props");
    }
    if (!info_.metadata.emplace(key, std::move(value)).second)
      fail(Errc::duplicate_key, wire_.where(), "metadata {} stands there twice", ballast::quoted(key));
    limit(info_.metadata.size(), kMaxListed, "metadata_props");
  }

  void read_training(Range rest) {
    const std::string scope = new_scope({}, "training");
    Field field;
    std::set<std::uint64_t> seen;
    while (wire_.next(rest, field)) {
      const bool is_graph =
          field.number == training_proto::initialization || field.number == training_proto::algorithm;
      if (is_graph && !seen.insert(field.number).second)
        fail(Errc::bad_onnx, wire_.where(), "a training_info has two graphs of one kind");
      if (field.number == training_proto::initialization)
        read_graph(wire_.message(field, "initialization"), new_scope(scope, "initialization"), 1);
      if (field.number == training_proto::algorithm)
        read_graph(wire_.message(field, "algorithm"), new_scope(scope, "algorithm"), 1);
    }
  }

  void read_function(const Range message) {
    OperatorCount function;
    Field field;
    for (Range rest = message; wire_.next(rest, field);) {
      if (field.number == function_proto::name) function.name = text(field, "a function's name");
      if (field.number == function_proto::domain) function.domain = text(field, "a function's domain");
      if (field.number == function_proto::node) ++function.count;
    }
    const std::string scope = new_scope({}, function.name.empty() ? "function" : function.name);
    info_.functions.push_back(std::move(function));
    limit(info_.functions.size(), kMaxListed, "functions");
    const std::uint32_t graph = ++graphs_;
    std::uint64_t position = 0;
    for (Range rest = message; wire_.next(rest, field);) {
      if (field.number == function_proto::node)
        read_node(wire_.message(field, "node"), scope, graph, position++, 0);
    }
  }

  void read_graph(const Range message, const std::string& scope, int depth) {
    if (depth > kMaxGraphDepth)
      fail(Errc::too_deep, wire_.where(), "graphs inside graphs, more than {} deep", kMaxGraphDepth);
    const bool is_main = depth == 0;
    const std::uint32_t graph = is_main ? 0 : ++graphs_;
    info_.subgraphs += is_main ? 0 : 1;
    limit(info_.subgraphs, kMaxListed, "subgraphs");
    Field field;
    for (Range rest = message; wire_.next(rest, field);) {
      if (field.number == graph_proto::initializer)
        give(read_tensor(wire_, wire_.message(field, "initializer")), scope, graph, Origin::initializer);
      else if (field.number == graph_proto::sparse_initializer)
        give_sparse(wire_.message(field, "sparse_initializer"), {}, scope, graph, Origin::initializer);
      else if (is_main)
        take_of_main_graph(field);
    }
    std::uint64_t position = 0;
    for (Range rest = message; wire_.next(rest, field);) {
      if (field.number == graph_proto::node)
        read_node(wire_.message(field, "node"), scope, graph, position++, depth);
    }
  }

  void take_of_main_graph(const Field& field) {
    if (field.number == graph_proto::name) {
      info_.graph_name = text(field, "a graph's name");
    } else if (field.number == graph_proto::input) {
      add_value(info_.inputs, wire_.message(field, "input"));
    } else if (field.number == graph_proto::output) {
      add_value(info_.outputs, wire_.message(field, "output"));
    }
  }

  void add_value(std::vector<ValueInfo>& values, Range message) {
    values.push_back(read_value_info(wire_, message));
    limit(values.size(), kMaxListed, "inputs or outputs");
    if (values.back().shape) dimensions_ += values.back().shape->size();
    limit(dimensions_, 10 * kMaxListed, "dimensions of inputs and outputs");
  }

  void read_node(const Range message, const std::string& scope, std::uint32_t graph, std::uint64_t position,
                 int depth) {
    limit(++info_.nodes, kMaxNodes, "nodes");
    Node node;
    bool has_attributes = false;
    Field field;
    for (Range rest = message; wire_.next(rest, field);) {
      if (field.number == node_proto::name) node.name = wire_.text(field, "a node's name", kMaxNameBytes);
      if (field.number == node_proto::op_type) node.op_type = wire_.text(field, "op_type", kMaxNameBytes);
      if (field.number == node_proto::domain)
        node.domain = wire_.text(field, "a node's domain", kMaxNameBytes);
      if (field.number == node_proto::output && node.output.empty())
        node.output = wire_.text(field, "an output's name", kMaxNameBytes);
      has_attributes = has_attributes || field.number == node_proto::attribute;
    }
    if (node.domain == "ai.onnx") node.domain.clear();
    std::uint64_t input = 0;
    for (Range rest = message; wire_.next(rest, field);) {
      if (field.number == node_proto::input)
        uses_.take(node.domain, node.op_type, input++, wire_.text(field, "an input's name", kMaxNameBytes));
    }
    ++operators_[{node.domain, node.op_type}];
    limit(operators_.size(), kMaxListed, "different operators");
    if (!has_attributes) return;
    if (node.name.empty()) node.name = node.output;
    if (node.name.empty()) node.name = fmt::format("{}_{}", node.op_type, position);
    for (Range rest = message; wire_.next(rest, field);) {
      if (field.number == node_proto::attribute)
        read_attribute(wire_.message(field, "attribute"), node, scope, graph, depth);
    }
  }

  void read_attribute(const Range message, const Node& node, const std::string& scope, std::uint32_t graph,
                      int depth) {
    Attribute attribute;
    Field field;
    std::set<std::uint64_t> single;
    for (Range rest = message; wire_.next(rest, field);) {
      namespace proto = attribute_proto;
      // Protobuf's readers put two messages of one field together.
      const bool is_single = field.number == proto::tensor || field.number == proto::graph ||
                             field.number == proto::sparse_tensor;
      if (is_single && !single.insert(field.number).second)
        fail(Errc::bad_onnx, wire_.where(), "an attribute has field {} twice", field.number);
      if (field.number == proto::name)
        attribute.name = wire_.text(field, "an attribute's name", kMaxNameBytes);
      attribute.leads_on = attribute.leads_on || field.number == proto::tensor ||
                           field.number == proto::graph || field.number == proto::graphs ||
                           field.number == proto::sparse_tensor;
    }
    if (!attribute.leads_on) return;
    const bool is_constant = node.op_type == "Constant" && node.domain.empty();
    const std::string& name = node.output.empty() ? node.name : node.output;
    std::size_t number = 0;
    for (Range rest = message; wire_.next(rest, field);) {
      if (field.number == attribute_proto::graph || field.number == attribute_proto::graphs) {
        std::string step = node.name + '/' + attribute.name;
        if (field.number == attribute_proto::graphs) step += fmt::format("/{}", number++);
        read_graph(wire_.message(field, "graph"), new_scope(scope, step), depth + 1);
      } else if (is_constant && field.number == attribute_proto::tensor) {
        TensorDescription tensor = read_tensor(wire_, wire_.message(field, "t"));
        tensor.name = name;  // the tensor's own name means nothing: the graph knows it by the node's output
        give(std::move(tensor), scope, graph, Origin::constant);
      } else if (is_constant && field.number == attribute_proto::sparse_tensor) {
        give_sparse(wire_.message(field, "sparse_tensor"), name, scope, graph, Origin::constant);
      }
    }
  }

  std::string new_scope(const std::string& parent, const std::string& wanted) {
    std::string scope = names_.scope(parent, wanted);
    limit_names();
    return scope;
  }

  void limit_names() const {
    const std::uint64_t most = kPlainNames + 8 * std::min(wire_.source().size(), std::uint64_t{1} << 40U);
    if (names_.bytes() > most)
      fail(Errc::expansion_limit, wire_.where(), "the names of tensors in subgraphs have more than {} bytes",
           most);
  }

  std::string name_of(const std::string& name, const std::string& scope, std::uint32_t graph) {
    limit(++tensors_, kMaxTensors, "tensors");
    if (name.empty()) fail(Errc::bad_name, wire_.where(), "an initializer without a name");
    std::string full = names_.add(graph, scope, name);
    if (full.empty())
      fail(Errc::duplicate_key, wire_.where(), "two tensors are called {}", ballast::quoted(scope + name));
    limit_names();
    return full;
  }

  void give(TensorDescription tensor, const std::string& scope, std::uint32_t graph, Origin origin) {
    std::string full_name = name_of(tensor.name, scope, graph);
    uses_.add(full_name, tensor.name, tensor, origin);
    tensor.name = std::move(full_name);
    count(tensor.skipped(), tensor.bytes, origin);
    count_external(tensor);
    sink_.tensor(tensor, origin);
  }

  void give_sparse(Range message, const std::string& name, const std::string& scope, std::uint32_t graph,
                   Origin origin) {
    SparseDescription sparse = read_sparse(wire_, message);
    sparse.values.name = name_of(name.empty() ? sparse.values.name : name, scope, graph);
    count(sparse.values.skipped(), sparse.values.bytes + sparse.indices.bytes, origin);
    count_external(sparse.values);
    count_external(sparse.indices);
    sink_.sparse(sparse, origin);
  }

  void count(bool skipped, std::uint64_t bytes, Origin origin) {
    TensorCount& sum = origin == Origin::initializer ? info_.initializers : info_.constants;
    ++sum.tensors;
    sum.bytes += bytes;
    info_.skipped += skipped ? 1 : 0;
  }

  void count_external(const TensorDescription& tensor) {
    if (tensor.data != DataIn::external) return;
    const auto [place, added] = external_.try_emplace(tensor.external.location, info_.external_files.size());
    if (added) {
      info_.external_files.push_back({.location = tensor.external.location});
      limit(info_.external_files.size(), kMaxListed, "files with external data");
    }
    TensorCount& sum = info_.external_files[place->second].holds;
    ++sum.tensors;
    sum.bytes += tensor.bytes;
  }

  // Before IR version 4 every initializer had to be an input too.
  void drop_initialized_inputs() {
    std::erase_if(info_.inputs, [&](const ValueInfo& input) { return names_.contains(0, input.name); });
  }

  void list_operators() {
    for (auto& [key, count] : operators_) info_.operators.push_back({key.first, key.second, count});
    std::stable_sort(info_.operators.begin(), info_.operators.end(),
                     [](const OperatorCount& a, const OperatorCount& b) { return a.count > b.count; });
  }

  WireReader wire_;
  const TensorSink& sink_;
  Info info_;
  Names names_;
  Uses uses_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> operators_;
  std::map<std::string, std::size_t> external_;
  std::uint32_t graphs_ = 0;
  std::uint64_t tensors_ = 0;
  std::uint64_t text_bytes_ = 0;
  std::uint64_t dimensions_ = 0;
};

}  // namespace

Info read_model(const ByteSource& source, const TensorSink& sink) {
  return ModelReader(source, sink).read();
}

}  // namespace ballast::onnx_file
