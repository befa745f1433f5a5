// SPDX-License-Identifier: Apache-2.0
#include "graph/recording.h"

#include <cstring>

#include "ballast/error.h"
#include "graph/probe.h"
#include "ops/counting.h"
#include "tensor/view_operations.h"

namespace ballast::graph {

struct Recording::View {
  Strides strides;
  std::uint64_t bit_offset = 0;
  std::shared_ptr<const Storage> kept;  // so that its address is not used again
};

namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.numel() == 0) return true;
  const Tensor x = a.contiguous();
  const Tensor y = b.contiguous();
  return std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size_bytes())) == 0;
}

const TracedStorage* traced(const Tensor& tensor) {
  return dynamic_cast<const TracedStorage*>(tensor.storage().get());
}

Tensor unwrapped(const Tensor& tensor) {
  const TracedStorage* storage = traced(tensor);
  if (storage == nullptr) return tensor;
  return {tensor.dtype(), tensor.shape(), tensor.strides(), storage->bytes(), tensor.bit_offset()};
}

constexpr std::int64_t kLarge = 4096;  // elements worth computing once for all recordings

std::string text_of(const Attribute& attribute) {
  std::string text = " " + attribute.name;
  const auto add = [&](const auto& one) { text += fmt::format(" {}", one); };
  std::visit(
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>)
          add(value);
        else
          for (const auto& one : value) add(one);
      },
      attribute.value);
  return text;
}

// With the form of the result, and no bytes before an operation that is run asks for them.
Tensor unseen(const Tensor& form, std::size_t seed) {
  const DType dtype = form.dtype();
  const std::int64_t count = form.numel();
  auto bytes = Storage::deferred(form.size_bytes(), [=](std::span<std::byte> out) {
    const Tensor made = probe_tensor(dtype, {count}, seed);
    std::memcpy(out.data(), made.data(), out.size());
  });
  return Tensor::contiguous_view(dtype, form.shape(), std::move(bytes));
}

// Lets operations read while it lives.
class Running {
 public:
  explicit Running(Session& session) : session_(session) { ++session_.running; }

  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  ~Running() { --session_.running; }

 private:
  Session& session_;
};

// Puts a recorder to work while it lives.
class Working {
 public:
  explicit Working(tracing::Recorder& recorder) : before_(std::exchange(tracing::recorder, &recorder)) {}

  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

  ~Working() { tracing::recorder = before_; }

 private:
  tracing::Recorder* before_;
};

// A copy is its original: whether one is made may depend on the size (a dimension of 1 is always dense).
void forget_copies(Graph& graph) {
  std::vector<std::int64_t> original(graph.values.size());
  for (std::size_t i = 0; i < original.size(); ++i) original[i] = static_cast<std::int64_t>(i);
  const auto look_up = [&](std::vector<std::int64_t>& ids) {
    for (std::int64_t& id : ids)
      if (id >= 0) id = original[static_cast<std::size_t>(id)];
  };
  for (GraphNode& node : graph.nodes) {
    look_up(node.inputs);
    if (node.operation == &operations::clone)
      original[static_cast<std::size_t>(node.outputs[0])] = node.inputs[0];
  }
  look_up(graph.outputs);
}

// Without nodes and values that no output needs; values in order of use. Of what values decide, the size
// alone may be needed, which no operand tells.
Graph pruned(const Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (const std::int64_t id : graph.inputs) needed[static_cast<std::size_t>(id)] = true;
  for (const std::int64_t id : graph.outputs) needed[static_cast<std::size_t>(id)] = true;
  std::vector<bool> kept(graph.nodes.size(), false);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    kept[i] = operations::counts_values(*graph.nodes[i].operation);
    for (const std::int64_t id : graph.nodes[i].outputs)
      kept[i] = kept[i] || (id >= 0 && needed[static_cast<std::size_t>(id)]);
    if (!kept[i]) continue;
    for (const std::int64_t id : graph.nodes[i].inputs)
      if (id >= 0) needed[static_cast<std::size_t>(id)] = true;
  }
  Graph out;
  std::vector<std::int64_t> place(graph.values.size(), -1);
  const auto moved = [&](std::int64_t id) {
    if (id < 0) return id;
    std::int64_t& to = place[static_cast<std::size_t>(id)];
    if (to < 0) {
      to = static_cast<std::int64_t>(out.values.size());
      out.values.push_back(graph.values[static_cast<std::size_t>(id)]);
    }
    return to;
  };
  for (const std::int64_t id : graph.inputs) out.inputs.push_back(moved(id));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!kept[i]) continue;
    GraphNode node = graph.nodes[i];
    for (std::int64_t& id : node.inputs) id = moved(id);
    for (std::int64_t& id : node.outputs) id = moved(id);
    out.nodes.push_back(std::move(node));
  }
  for (const std::int64_t id : graph.outputs) out.outputs.push_back(moved(id));
  return out;
}

}  // namespace

Recording::Recording(const Slots& slots, KnownResults& results, std::size_t number)
    : slots_(slots), known_(results), number_(number) {
  for (std::size_t i = 0; i < slots.slots.size(); ++i) {
    if (slots.slots[i].tensor->has_data())
      slots_by_storage_.emplace(slots.slots[i].tensor->storage().get(), i);
  }
  for (const Node& node : slots.nodes) {
    if (node.layer_path != nullptr) layer_paths_.emplace(node.layer_path, node.path);
  }
  session_->before_write = [this](const Storage& bytes) {
    const tracing::Aside aside;
    for (GraphValue& value : graph_.values) {
      if (value.tensor.has_data() && value.tensor.storage().get() == &bytes)
        value.tensor = value.tensor.clone();
    }
  };
}

Recording::~Recording() {
  session_->finished.store(true);
}

void Recording::enter(const std::string& path, const char* layer) {
  const auto found = layer_paths_.find(&path);
  const std::string& known = found == layer_paths_.end() ? path : found->second;
  places_.push_back(known.empty() ? std::string(layer) : display(known) + " (" + layer + ")");
}

void Recording::leave() noexcept {
  if (!places_.empty()) places_.pop_back();
}

std::string Recording::place_of(const std::vector<std::int64_t>& inputs) const {
  if (!places_.empty()) return places_.back();
  for (const std::int64_t id : inputs) {
    if (id < 0) continue;
    const GraphValue& value = graph_.values[static_cast<std::size_t>(id)];
    if (value.kind != GraphValue::Kind::parameter) continue;
    const std::size_t dot = value.name.rfind('.');
    return display(dot == std::string::npos ? value.name : value.name.substr(0, dot));
  }
  return {};
}

std::int64_t Recording::add_constant(const Tensor& tensor) {
  const auto id = static_cast<std::int64_t>(graph_.values.size());
  graph_.values.push_back({.kind = GraphValue::Kind::constant,
                           .name = {},
                           .dtype = tensor.dtype(),
                           .shape = tensor.shape(),
                           .known = true,
                           .tensor = unwrapped(tensor).clone()});
  views_.push_back({tensor.strides(), tensor.bit_offset(), tensor.storage()});
  keys_.emplace_back();
  leaves_by_storage_.emplace(tensor.storage().get(), id);
  return id;
}

std::int64_t Recording::leaf(const Tensor& tensor) {
  const tracing::Aside aside;
  const auto [first, last] = leaves_by_storage_.equal_range(tensor.storage().get());
  for (auto at = first; at != last; ++at) {
    const auto id = static_cast<std::size_t>(at->second);
    const GraphValue& value = graph_.values[id];
    if (!(value.shape == tensor.shape()) || !(views_[id].strides == tensor.strides()) ||
        views_[id].bit_offset != tensor.bit_offset() || value.dtype != tensor.dtype())
      continue;
    // A constant may have been written to since; parameters are not written by a model that only runs.
    if (value.kind == GraphValue::Kind::parameter || same_bytes(value.tensor, unwrapped(tensor)))
      return at->second;
  }
  const auto [begin, end] = slots_by_storage_.equal_range(tensor.storage().get());
  for (auto at = begin; at != end; ++at) {
    const Slot& slot = slots_.slots[at->second];
    if (!slot.tensor->same_view(tensor)) continue;
    const auto id = static_cast<std::int64_t>(graph_.values.size());
    graph_.values.push_back({.kind = GraphValue::Kind::parameter,
                             .name = slot.path,
                             .dtype = tensor.dtype(),
                             .shape = tensor.shape(),
                             .known = true,
                             .tensor = tensor,
                             .slot = at->second});
    views_.push_back({tensor.strides(), tensor.bit_offset(), tensor.storage()});
    keys_.push_back(fmt::format("parameter {}", at->second));
    leaves_by_storage_.emplace(tensor.storage().get(), id);
    return id;
  }
  return add_constant(tensor);
}

std::int64_t Recording::value_of(const Tensor& tensor, const char* op) {
  if (!tensor.defined()) return -1;
  if (!tensor.has_data())
    fail(Errc::invalid_argument, op,
         "an operand, {} {}, has no data: a model is traced with its weights loaded",
         info(tensor.dtype()).code, to_string(tensor.shape()));
  const TracedStorage* storage = traced(tensor);
  if (storage == nullptr || storage->written()->load()) return leaf(tensor);
  if (storage->session() != session_) {
    if (storage->known()) return leaf(tensor);
    fail(Errc::traced_value, op, "an operand was made while another trace ran, which is over");
  }
  const auto id = static_cast<std::size_t>(storage->value());
  const GraphValue& value = graph_.values[id];
  if (!(value.shape == tensor.shape()) || value.dtype != tensor.dtype() ||
      !(views_[id].strides == tensor.strides()) || views_[id].bit_offset != tensor.bit_offset()) {
    fail(Errc::traced_value, op,
         "an operand looks at the storage of a traced tensor in a way no operation recorded; use reshape, "
         "permute, narrow, index");
  }
  return storage->value();
}

Tensor Recording::wrapped(const Tensor& plain, std::int64_t value, std::string made_by) {
  const TracedStorage* before = traced(plain);
  auto storage = std::make_shared<TracedStorage>(
      before != nullptr ? before->bytes() : plain.storage(), session_, value,
      graph_.values[static_cast<std::size_t>(value)].known, std::move(made_by),
      before != nullptr ? before->written() : std::make_shared<std::atomic<bool>>(false));
  return {plain.dtype(), plain.shape(), plain.strides(), std::move(storage), plain.bit_offset()};
}

// "" when it is not made of parameters alone, or by chance.
std::string Recording::key_of(const GraphNode& node) const {
  if (node.operation->kind == Operation::Kind::random || node.inputs.empty()) return {};
  // The row's own place: two of them may have one name.
  std::string key = fmt::format("{}", fmt::ptr(node.operation));
  for (const Attribute& attribute : node.attributes) key += text_of(attribute);
  for (const std::int64_t id : node.inputs) {
    const std::string& of_input = id < 0 ? "_" : keys_[static_cast<std::size_t>(id)];
    if (of_input.empty()) return {};
    key += " (" + of_input + ")";
  }
  // Short, or names of names of names would grow without end.
  return known_.short_names.emplace(key, fmt::format("#{}", known_.short_names.size())).first->second;
}

std::vector<Tensor> Recording::known_results(const std::string& key, std::span<const Tensor> inputs,
                                             const tracing::Run& run) {
  if (const auto found = known_.results.find(key); found != known_.results.end()) return found->second;
  std::vector<Tensor> results = run();
  std::vector<Tensor> kept;
  for (const Tensor& result : results) {
    if (key.empty() || !result.defined() || result.numel() < kLarge) return results;
    const Tensor plain = unwrapped(result);
    for (const Tensor& input : inputs)
      if (input.defined() && unwrapped(input).storage() == plain.storage()) return results;  // a view
    // Read-only: the next recording's host may not write what this one's graph holds.
    const auto& bytes = plain.storage();
    auto shared = Storage::borrow(static_cast<const void*>(bytes->data()), bytes->size(), [bytes] {});
    kept.emplace_back(plain.dtype(), plain.shape(), plain.strides(), std::move(shared), plain.bit_offset());
  }
  known_.results.emplace(key, std::move(kept));
  return results;
}

// As if drawn by lot, so that it follows from no size, nor from another operation's.
Tensor Recording::counted(const Tensor& form) {
  std::uint64_t lot = (number_ + 1) * 0x9E3779B97F4A7C15U ^ ++counted_ * 0xBF58476D1CE4E5B9U;
  lot = (lot ^ (lot >> 29U)) * 0x94D049BB133111EBU;
  Shape shape = form.shape();
  shape[0] = 7 + static_cast<std::int64_t>((lot >> 33U) % 241);
  return {form.dtype(), shape};
}

std::vector<Tensor> Recording::record(const Operation& op, std::span<const Tensor> inputs,
                                      Attributes attributes, const tracing::Run& run) {
  GraphNode node{.operation = &op, .inputs = {}, .outputs = {}, .attributes = std::move(attributes)};
  bool known = true;
  for (const Tensor& input : inputs) {
    node.inputs.push_back(value_of(input, op.name));
    if (node.inputs.back() >= 0)
      known = known && graph_.values[static_cast<std::size_t>(node.inputs.back())].known;
  }
  node.place = place_of(node.inputs);
  const std::string key = known ? key_of(node) : std::string();
  std::vector<Tensor> results;
  {
    const tracing::Aside aside;
    const Running running(*session_);
    const auto forms = known || op.form == nullptr ? std::nullopt : op.form({op, inputs, node.attributes});
    if (forms) {
      for (const Tensor& form : *forms)
        results.push_back(form.defined() ? unseen(operations::counts_values(op) ? counted(form) : form,
                                                  graph_.values.size())
                                         : Tensor());
    } else {
      results = known ? known_results(key, inputs, run) : run();
      for (const Tensor& result : results) work_ += result.numel();
    }
  }
  const std::string made_by = node.place.empty() ? op.name : node.place + ": " + op.name;
  for (Tensor& result : results) {
    if (!result.defined()) {
      node.outputs.push_back(-1);
      continue;
    }
    const auto id = static_cast<std::int64_t>(graph_.values.size());
    node.outputs.push_back(id);
    graph_.values.push_back({.kind = GraphValue::Kind::result,
                             .name = {},
                             .dtype = result.dtype(),
                             .shape = result.shape(),
                             .known = known,
                             .tensor = known ? unwrapped(result) : Tensor()});
    views_.push_back({result.strides(), result.bit_offset(), nullptr});
    keys_.push_back(key.empty() ? std::string() : fmt::format("{} #{}", key, node.outputs.size() - 1));
    result = wrapped(result, id, made_by);
  }
  graph_.nodes.push_back(std::move(node));
  return results;
}

Graph Recording::run(const std::vector<InputSpec>& inputs, const std::vector<Shape>& shapes,
                     const ForwardFunction& forward) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor plain = unseen(Tensor(inputs[i].dtype, shapes[i]), i);
    const auto id = static_cast<std::int64_t>(graph_.values.size());
    graph_.values.push_back({.kind = GraphValue::Kind::input,
                             .name = inputs[i].name,
                             .dtype = inputs[i].dtype,
                             .shape = shapes[i]});
    views_.push_back({plain.strides(), plain.bit_offset(), nullptr});
    keys_.emplace_back();
    graph_.inputs.push_back(id);
    tensors.push_back(wrapped(plain, id, "input " + quoted(inputs[i].name)));
  }
  std::vector<Tensor> results;
  {
    const Working working(*this);
    results = forward(tensors);
    for (const Tensor& result : results) {
      if (!result.defined()) continue;
      graph_.outputs.push_back(value_of(result, "the result"));
    }
  }
  forget_copies(graph_);
  return pruned(graph_);
}

}  // namespace ballast::graph
