// SPDX-License-Identifier: Apache-2.0
#include "onnx/lowering.h"

#include <algorithm>

#include "ballast/error.h"
#include "base/fail.h"
#include "onnx/fold_norm.h"

namespace ballast::onnx {
namespace {

// Computed by the runtime, so that parameters keep name and form.
bool is_view(const Operation& op) {
  return op.kind == Operation::Kind::views && &op != &operations::expand;
}

// The user's.
bool is_own(const Operation& op) {
  return op.to_onnx != nullptr || *op.domain != '\0';
}

// "layer1.0.conv1 (Conv2d)" → "layer1.0.conv1"
std::string path_of(const std::string& place) {
  return place.substr(0, place.find(" ("));
}

std::string label(const GraphNode& node) {
  std::string op = to_string(*node.operation);
  return node.place.empty() ? op : op + " in " + node.place;
}

// "layer1.0.bn1", "layer1.0.conv2" → "layer1.0"
std::string shared_part(const std::string& a, const std::string& b) {
  std::size_t end = 0;
  for (std::size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    const bool a_ends = i == a.size() || a[i] == '.';
    const bool b_ends = i == b.size() || b[i] == '.';
    if (a_ends && b_ends) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) break;
  }
  return a.substr(0, end);
}

// Made of the inputs' dimensions alone.
bool is_named(const SizeExpr& size) {
  return std::all_of(size.terms.begin(), size.terms.end(), [](const SizeExpr::Term& term) {
    return std::all_of(term.dims.begin(), term.dims.end(),
                       [](const SizeExpr::Dim& dim) { return !dim.name.empty(); }) &&
           std::all_of(term.rounded.begin(), term.rounded.end(), is_named);
  });
}

}  // namespace

const TranslateTable& translations() {
  static const TranslateTable table = [] {
    TranslateTable all;
    for (const auto add : {add_elementwise, add_activations, add_movement, add_indexing, add_reductions,
                           add_layers, add_norms, add_images, add_recurrent, add_attention, add_signals})
      add(all);
    return all;
  }();
  return table;
}

Lowering::Lowering(const Graph& graph, const Weights& weights, const Options& options)
    : graph_(graph), weights_(weights), options_(options), names_(graph.values.size()) {
  model_.opset = options.opset;
  if (options.fold_batch_norm) fold_batch_norms(graph_);
  names_.resize(graph_.values.size());
  wide_.resize(graph_.values.size());
  mark_foldable();
  find_scopes();
  for (const std::int64_t id : graph_.inputs) {
    names_[static_cast<std::size_t>(id)] = value(id).name;
    used_.insert(value(id).name);
    model_.inputs.push_back({value(id).name, value(id).dtype, dims_of(value(id))});
  }
  for (const std::string& name : options.outputs) used_.insert(name);
  for (const auto& entry : weights.tensors) used_.emplace(entry.name);
}

// An operation between two layers belongs to what holds them both.
void Lowering::find_scopes() {
  const auto& nodes = graph_.nodes;
  scopes_.assign(nodes.size(), {});
  for (std::size_t i = 0; i < nodes.size(); ++i) scopes_[i] = path_of(nodes[i].place);
  std::vector<std::string> next(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 1;) next[i - 1] = nodes[i].place.empty() ? next[i] : scopes_[i];
  std::string before;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].place.empty())
      scopes_[i] = shared_part(before, next[i]);
    else
      before = scopes_[i];
  }
}

void Lowering::mark_foldable() {
  fixed_.assign(graph_.values.size(), false);
  for (std::size_t i = 0; i < graph_.values.size(); ++i) {
    const GraphValue& one = graph_.values[i];
    fixed_[i] = one.kind == GraphValue::Kind::parameter ||
                (one.kind == GraphValue::Kind::constant && one.number.is_constant());
  }
  for (const GraphNode& node : graph_.nodes) {
    const bool fixed = node.symbolic.empty() && !is_own(*node.operation) &&
                       node.operation->kind != Operation::Kind::random &&
                       std::all_of(node.inputs.begin(), node.inputs.end(), [&](std::int64_t id) {
                         return id < 0 || fixed_[static_cast<std::size_t>(id)];
                       });
    for (const std::int64_t id : node.outputs)
      if (id >= 0) fixed_[static_cast<std::size_t>(id)] = fixed;
  }
}

Tensor Lowering::known(std::int64_t id) const {
  return fixed_[static_cast<std::size_t>(id)] ? value(id).tensor : Tensor();
}

// One line for each reason that several operations have.
void Lowering::refuse_all(const std::vector<Reason>& reasons) const {
  constexpr std::size_t kMany = 3;
  std::map<std::string, std::size_t> counts;
  for (const Reason& reason : reasons) ++counts[reason.why];
  std::string all;
  for (const Reason& reason : reasons) {
    std::size_t& count = counts[reason.why];
    if (count == 0) continue;  // said before
    all += fmt::format("\n  {}: {}", reason.label, reason.why);
    if (count <= kMany) continue;
    all += fmt::format(" (and {} other operations)", count - 1);
    count = 0;
  }
  fail(Errc::not_exportable, "onnx", "{} of {} operations cannot be exported at opset {}:{}", reasons.size(),
       graph_.nodes.size(), options_.opset, all);
}

FileModel Lowering::run() {
  std::vector<Reason> reasons;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    place_ = scopes_[i];
    try {
      lower(node);
    } catch (const Unexportable& reason) {
      reasons.push_back({label(node), reason.why});
      for (const std::int64_t id : node.outputs)
        if (id >= 0) set(id, "(not there)");
    }
  }
  if (!reasons.empty()) refuse_all(reasons);
  name_outputs(model_);
  drop_unused(model_);
  describe_values(model_);
  return std::move(model_);
}

void Lowering::lower(const GraphNode& node) {
  const Operation& op = *node.operation;
  if (is_own(op)) return lower_own(node);
  const std::int64_t result = node.outputs[0];
  // What is made of nothing (arange, full), and, when that is wanted, what follows from constants.
  const bool made = node.inputs.empty();
  if (node.outputs.size() == 1 && result >= 0 && fixed_[static_cast<std::size_t>(result)] &&
      (made || (options_.fold_constants && !is_view(op))))
    return;  // written as a constant by name_of() when it is needed
  const auto found = translations().find(&op);
  if (found == translations().end()) refuse("has no translation to ONNX: its row needs a domain, or to_onnx");
  for (const std::int64_t id : node.outputs)
    if (id >= 0 && !onnx_dtype(value(id).dtype))
      refuse(fmt::format("ONNX has no {}", info(value(id).dtype).code));
  found->second(Call(*this, node));
}

void Lowering::lower_own(const GraphNode& node) {
  // An attribute is a number in the file, and would be that of the sizes that were traced.
  if (!node.symbolic.empty())
    refuse(
        fmt::format("{} follows from the inputs' sizes, which an attribute cannot: hand it over as a tensor",
                    node.symbolic.front().attribute));
  std::vector<std::string> inputs;
  for (const std::int64_t id : node.inputs) inputs.push_back(id < 0 ? std::string() : name_of(id));
  const Operation& op = *node.operation;
  std::vector<std::string> results;
  if (op.to_onnx != nullptr) {
    results = op.to_onnx(*this, inputs, node.attributes);
    if (results.size() != node.outputs.size())
      refuse(fmt::format("its translation gives {} results, the operation {}", results.size(),
                         node.outputs.size()));
  } else {
    if (std::string_view(op.domain) == "ai.onnx" || *op.name == '\0')
      refuse("an operation of the user's own needs a domain of its own, and a name");
    const auto [at, is_new] = model_.domains.emplace(op.domain, op.version);
    if (!is_new && at->second != op.version)
      refuse(
          fmt::format("domain {} is used in versions {} and {}", quoted(op.domain), at->second, op.version));
    results = nodes(op.name, std::move(inputs), node.attributes, node.outputs.size(), op.domain);
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    if (node.outputs[i] >= 0) set(node.outputs[i], results[i]);
}

std::string Lowering::unique(const std::string& wanted) {
  std::string name = wanted;
  for (std::size_t i = 1; !used_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

std::vector<std::string> Lowering::nodes(const std::string& op, std::vector<std::string> inputs,
                                         Attributes attributes, std::size_t results,
                                         const std::string& domain) {
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  const std::string name = unique(place_.empty() ? op : place_ + "/" + op);
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < results; ++i) outputs.push_back(unique(name + "_output_" + std::to_string(i)));
  model_.nodes.push_back({op, domain, name, std::move(inputs), outputs, std::move(attributes)});
  return outputs;
}

std::string Lowering::name_of(std::int64_t id) {
  std::string& name = names_[static_cast<std::size_t>(id)];
  if (!name.empty()) return name;
  const GraphValue& one = value(id);
  std::string made;
  if (one.kind == GraphValue::Kind::parameter)
    made = parameter(one, false);
  else if (!one.number.is_constant())
    made = size_scalar(one.number);
  else if (!one.name.empty())
    made = folded(one);
  else
    made = constant(one.tensor);
  names_[static_cast<std::size_t>(id)] = made;
  return made;
}

bool Lowering::lies_transposed(std::int64_t id) const {
  const GraphValue& one = value(id);
  return one.kind == GraphValue::Kind::parameter && weights_.saved_as[one.slot].transposed;
}

std::string Lowering::transposed(std::int64_t id) {
  if (lies_transposed(id)) return parameter(value(id), true);
  return node("Transpose", {name_of(id)}, {{"perm", Dims{1, 0}}});
}

// The tensor of the file, cut and turned into what the model computes with; or turned once more.
std::string Lowering::parameter(const GraphValue& one, bool turned) {
  const SavedAs& saved = weights_.saved_as[one.slot];
  const Tensor& whole = weights_.tensors.at(saved.name).tensor();
  if (!onnx_dtype(whole.dtype()))
    refuse(fmt::format("parameter {} is {}, which ONNX does not have", quoted(one.name),
                       info(whole.dtype()).code));
  const std::string held = shared("weight " + saved.name, [&] {
    model_.initializers.push_back({weight_name(saved.name), storable(whole), true});
    return model_.initializers.back().name;
  });
  return shared(fmt::format("parameter {} {}", one.slot, turned), [&] {
    const std::string before = std::exchange(place_, path_of(one.name.substr(0, one.name.rfind('.'))));
    std::string name = held;
    if (saved.parts > 1) {
      const std::int64_t rows = whole.shape()[0] / static_cast<std::int64_t>(saved.parts);
      const auto part = static_cast<std::int64_t>(saved.part);
      name = slice(name, 0, part * rows, (part + 1) * rows);
    }
    if (saved.transposed != turned) name = node("Transpose", {name}, {{"perm", Dims{1, 0}}});
    name = cast(name, whole.dtype(), one.dtype);
    place_ = before;
    return name;
  });
}

// Names of parameters are kept for them, and for what a batch norm was folded into; whoever comes second gets
// another.
std::string Lowering::weight_name(const std::string& name) {
  return weights_taken_.insert(name).second ? name : unique(name);
}

std::string Lowering::folded(const GraphValue& one) {
  if (!weights_.tensors.contains(one.name)) return initializer(one.name, one.tensor);
  model_.initializers.push_back({weight_name(one.name), one.tensor});
  return model_.initializers.back().name;
}

// Older opsets know BF16 and have no operator that takes it.
Tensor Lowering::storable(const Tensor& tensor) const {
  return tensor.dtype() == DType::bf16 && opset() < 13 ? tensor.to_lazy(DType::f32) : tensor;
}

std::string Lowering::initializer(const std::string& wanted, const Tensor& tensor) {
  if (!onnx_dtype(tensor.dtype())) refuse(fmt::format("a constant is {}", info(tensor.dtype()).code));
  std::string name = unique(wanted);
  model_.initializers.push_back({name, storable(tensor)});
  return name;
}

std::string Lowering::shared(const std::string& key, const std::function<std::string()>& make) {
  const auto found = cache_.find(key);
  if (found != cache_.end()) return found->second;
  std::string name = make();
  cache_.emplace(key, name);
  return name;
}

std::vector<FileDim> Lowering::dims_of(const GraphValue& one) const {
  std::vector<FileDim> dims;
  for (std::size_t i = 0; i < one.shape.size(); ++i) {
    const SizeExpr& size = one.sizes[i];
    if (size.is_constant()) {
      dims.push_back({size.constant, {}});
      continue;
    }
    dims.push_back({-1, is_named(size) ? to_string(size) : std::string()});
  }
  return dims;
}

// Pieces that were asked for and not used after all, and what only they took: runtimes warn of them.
void Lowering::drop_unused(FileModel& model) {
  std::set<std::string> wanted;
  for (const FileValue& output : model.outputs) wanted.insert(output.name);
  for (std::size_t i = model.nodes.size(); i-- > 0;) {
    Node& one = model.nodes[i];
    const bool used = std::any_of(one.outputs.begin(), one.outputs.end(),
                                  [&](const std::string& name) { return wanted.contains(name); });
    if (used)
      wanted.insert(one.inputs.begin(), one.inputs.end());
    else
      one.op.clear();
  }
  std::erase_if(model.nodes, [](const Node& one) { return one.op.empty(); });
  std::erase_if(model.initializers, [&](const Initializer& one) { return !wanted.contains(one.name); });
}

// Dtypes and shapes of what lies between inputs and outputs, for those who look at the file.
void Lowering::describe_values(FileModel& model) const {
  std::set<std::string> open;
  for (const Node& one : model.nodes) open.insert(one.outputs.begin(), one.outputs.end());
  for (const FileValue& output : model.outputs) open.erase(output.name);
  for (std::size_t i = 0; i < graph_.values.size(); ++i) {
    const GraphValue& one = graph_.values[i];
    const bool stored_otherwise = one.dtype == DType::bf16 && opset() < 13;
    if (one.kind != GraphValue::Kind::result || stored_otherwise || open.erase(names_[i]) == 0) continue;
    model.values.push_back({names_[i], one.dtype, dims_of(one)});
  }
}

// Results get the names the caller wants: the node that makes one is renamed, or a node is put behind it when
// it is an input, a constant, or a result already.
void Lowering::name_outputs(FileModel& model) {
  place_.clear();
  std::map<std::string, std::string> renamed;
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    const GraphValue& one = value(graph_.outputs[i]);
    const std::string& wanted = options_.outputs[i];
    const std::string made = name_of(graph_.outputs[i]);
    const bool by_node = std::any_of(model.nodes.begin(), model.nodes.end(), [&](const Node& candidate) {
      return std::find(candidate.outputs.begin(), candidate.outputs.end(), made) != candidate.outputs.end();
    });
    if (by_node && !renamed.contains(made)) {
      renamed.emplace(made, wanted);
    } else {
      model.nodes.push_back({"Identity", {}, unique("Identity"), {made}, {wanted}, {}});
    }
    model.outputs.push_back({wanted, one.dtype, dims_of(one)});
  }
  for (Node& one : model.nodes) {
    for (auto* names : {&one.inputs, &one.outputs}) {
      for (std::string& name : *names)
        if (const auto found = renamed.find(name); found != renamed.end()) name = found->second;
    }
  }
}

}  // namespace ballast::onnx
