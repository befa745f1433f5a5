// SPDX-License-Identifier: Apache-2.0
// Several recordings of one model with different sizes, made one graph: what differs between them must follow
// from the sizes of the inputs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "ballast/display.h"
#include "ballast/graph.h"
#include "base/fail.h"
#include "graph/recording.h"
#include "graph/solve.h"

namespace ballast {
namespace graph {
namespace {

// Why graphs cannot be made one: thrown and caught in this file alone, so that the dimension can be named.
struct Differs {
  std::string place;
  std::string what;
};

[[noreturn]] void differ(const GraphNode& node, std::string what) {
  throw Differs{node.place.empty() ? node.op : node.place + ": " + node.op, std::move(what)};
}

class Merger {
 public:
  Merger(const std::vector<Graph>& graphs, std::vector<Known> symbols)
      : graphs_(graphs), symbols_(std::move(symbols)), out_(graphs[0]) {}

  Graph run() {
    check_structure();
    for (std::size_t i = 0; i < out_.nodes.size(); ++i) merge_node(i);
    for (std::size_t i = 0; i < out_.values.size(); ++i) name_dims(i);
    return std::move(out_);
  }

 private:
  [[nodiscard]] Seen pad(const std::vector<std::int64_t>& seen) const {
    Seen all{};
    for (std::size_t t = 0; t < kTraces; ++t) all[t] = seen[std::min(t, seen.size() - 1)];
    return all;
  }

  void check_structure() const {
    for (const Graph& other : graphs_) {
      for (std::size_t i = 0; i < std::min(out_.nodes.size(), other.nodes.size()); ++i) {
        const GraphNode& a = out_.nodes[i];
        const GraphNode& b = other.nodes[i];
        if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs ||
            a.attributes.size() != b.attributes.size())
          differ(a, fmt::format("with other sizes the model does something else here ({})", b.op));
      }
      if (out_.nodes.size() != other.nodes.size() || out_.outputs != other.outputs ||
          out_.values.size() != other.values.size()) {
        throw Differs{"trace", fmt::format("the model takes {} operations for one size and {} for another",
                                           out_.nodes.size(), other.nodes.size())};
      }
    }
  }

  // Sizes of the operands: often just what is wanted.
  [[nodiscard]] std::vector<Known> operand_dims(const GraphNode& node) const {
    std::vector<Known> known;
    for (const std::int64_t id : node.inputs) {
      if (id < 0) continue;
      const auto place = static_cast<std::size_t>(id);
      for (std::size_t axis = 0; axis < out_.values[place].shape.size(); ++axis) {
        std::vector<std::int64_t> seen;
        for (const Graph& graph : graphs_) seen.push_back(graph.values[place].shape[axis]);
        known.push_back({{id, static_cast<std::int64_t>(axis), {}}, pad(seen)});
      }
    }
    return known;
  }

  void merge_node(std::size_t i) {
    GraphNode& node = out_.nodes[i];
    for (const std::int64_t id : node.inputs) {
      if (id >= 0 && out_.values[static_cast<std::size_t>(id)].kind == GraphValue::Kind::constant)
        merge_constant(node, static_cast<std::size_t>(id));
    }
    for (std::size_t a = 0; a < node.attributes.size(); ++a) merge_attribute(node, i, a);
  }

  void merge_attribute(GraphNode& node, std::size_t i, std::size_t a) {
    std::vector<const Attribute*> all;
    for (const Graph& graph : graphs_) all.push_back(&graph.nodes[i].attributes[a]);
    const bool same =
        std::all_of(all.begin(), all.end(), [&](const Attribute* other) { return *other == *all[0]; });
    if (same) return;
    const std::string& name = all[0]->name;
    if (std::holds_alternative<std::int64_t>(all[0]->value)) {
      std::vector<std::int64_t> seen;
      for (const Attribute* one : all) seen.push_back(std::get<std::int64_t>(one->value));
      node.symbolic.push_back({name, 0, solved(node, name, seen)});
      return;
    }
    const auto* dims = std::get_if<Dims>(&all[0]->value);
    if (dims == nullptr) differ(node, fmt::format("{} is a number that depends on a size", name));
    for (std::size_t k = 0; k < dims->size(); ++k) {
      std::vector<std::int64_t> seen;
      for (const Attribute* one : all) {
        const auto* other = std::get_if<Dims>(&one->value);
        if (other == nullptr || other->size() != dims->size())
          differ(node, fmt::format("{} has another length for other sizes", name));
        seen.push_back((*other)[k]);
      }
      if (std::all_of(seen.begin(), seen.end(), [&](std::int64_t n) { return n == seen[0]; })) continue;
      node.symbolic.push_back({name, k, solved(node, name, seen)});
    }
  }

  [[nodiscard]] SizeExpr solved(const GraphNode& node, std::string_view what,
                                const std::vector<std::int64_t>& seen) const {
    auto found =
        graphs_.size() >= trace_count(1) ? solve(pad(seen), symbols_, operand_dims(node)) : std::nullopt;
    if (!found)
      differ(node, fmt::format("{} is {}: no sum or product of sizes explains it", what,
                               to_string(ShapeView(seen))));
    return *found;
  }

  void merge_constant(const GraphNode& node, std::size_t id) {
    GraphValue& value = out_.values[id];
    if (!value.number.is_constant()) return;  // seen before
    bool same = true;
    bool same_shape = true;
    for (const Graph& graph : graphs_) {
      const Tensor& other = graph.values[id].tensor;
      same_shape = same_shape && other.shape() == value.tensor.shape();
      same =
          same && same_shape && other.dtype() == value.dtype &&
          std::memcmp(other.data(), value.tensor.data(), static_cast<std::size_t>(other.size_bytes())) == 0;
    }
    if (same) return;
    if (value.shape.empty()) {
      std::vector<std::int64_t> seen;
      for (const Graph& graph : graphs_) {
        const double number = graph.values[id].tensor.item();
        if (number != std::floor(number) || std::abs(number) > 0x1p53)
          differ(node, fmt::format("an operand is a number that depends on a size ({})", number));
        seen.push_back(static_cast<std::int64_t>(number));
      }
      value.number = solved(node, "an operand", seen);
      return;
    }
    differ(node, same_shape
                     ? "an operand was computed by the model's own code and differs with the size"
                     : "an operand was made by the model's own code and its shape differs with the size; "
                       "zeros(), full() and arange() can follow it");
  }

  void name_dims(std::size_t id) {
    GraphValue& value = out_.values[id];
    value.sizes.clear();
    for (std::size_t axis = 0; axis < value.shape.size(); ++axis) {
      std::vector<std::int64_t> seen;
      for (const Graph& graph : graphs_) {
        if (graph.values[id].shape.size() != value.shape.size())
          throw Differs{"trace", "a rank differs with the size"};
        seen.push_back(graph.values[id].shape[axis]);
      }
      const auto found = solve(pad(seen), symbols_);
      SizeExpr itself;
      itself.terms.push_back({1, {{static_cast<std::int64_t>(id), static_cast<std::int64_t>(axis), {}}}});
      value.sizes.push_back(found ? *found : itself);
    }
  }

  const std::vector<Graph>& graphs_;
  std::vector<Known> symbols_;
  Graph out_;
};

class Tracer {
 public:
  Tracer(const Slots& slots, const std::vector<InputSpec>& inputs, const ForwardFunction& forward)
      : slots_(slots), inputs_(inputs), forward_(forward), symbols_(symbols_of(inputs)) {
    for (const Symbol& symbol : symbols_) factors_.push_back(factors_for(symbol).front());
  }

  Graph run() {
    const std::vector<Graph> graphs = recordings();
    if (graphs[0].outputs.empty())
      fail(Errc::invalid_argument, "trace", "forward() does not take {} tensors, or returns none",
           inputs_.size());
    try {
      Graph graph = Merger(graphs, known(graphs.size(),
                                         [&](std::size_t s, std::size_t t) { return symbols_[s].sizes[t]; }))
                        .run();
      graph.dynamic = !symbols_.empty();
      return graph;
    } catch (const Differs& reason) {
      fail(Errc::baked_dimension, reason.place, "dimension {} is baked in: {}", quoted(guilty(graphs[0])),
           reason.what);
    }
  }

 private:
  template <class SizeOf>
  [[nodiscard]] Graph record(const SizeOf& size_of) const {
    std::map<std::string, std::int64_t> sizes;
    for (std::size_t s = 0; s < symbols_.size(); ++s) sizes[symbols_[s].name] = size_of(s) * factors_[s];
    Recording recording(slots_);
    return recording.run(inputs_, shapes_of(inputs_, sizes), forward_);
  }

  // One for each trace. Sizes the model does not take are refused by its operations; others are tried then.
  [[nodiscard]] std::vector<Graph> recordings() {
    std::size_t attempts = 1;
    for (const Symbol& symbol : symbols_) attempts = std::max(attempts, factors_for(symbol).size());
    std::unique_ptr<Error> refusal;
    for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
      for (std::size_t s = 0; s < symbols_.size(); ++s) {
        const auto factors = factors_for(symbols_[s]);
        factors_[s] = factors[std::min(attempt, factors.size() - 1)];
      }
      try {
        std::vector<Graph> graphs;
        for (std::size_t t = 0; t < trace_count(symbols_.size()); ++t)
          graphs.push_back(record([&](std::size_t s) { return symbols_[s].sizes[t]; }));
        return graphs;
      } catch (const Error& error) {
        if (symbols_.empty() || error.code() != Errc::shape_mismatch) throw;
        if (!refusal) refusal = std::make_unique<Error>(error);
      }
    }
    refuse_sizes(*refusal);
  }

  [[noreturn]] void refuse_sizes(const Error& error) const {
    std::string names;
    for (const Symbol& symbol : symbols_) names += (names.empty() ? "" : ", ") + quoted(symbol.name);
    std::string_view what = error.what();
    if (!error.where().empty()) what.remove_prefix(error.where().size() + 2);
    fail(Errc::baked_dimension, error.where(),
         "the model takes none of the sizes tried for {} ({}); a dimension it fixes needs its number, one it "
         "divides needs multiple_of, and the rank must be what it expects",
         names, what);
  }

  // With the sizes of `count` traces, the last one standing for those that were not made.
  template <class SizeOf>
  [[nodiscard]] std::vector<Known> known(std::size_t count, const SizeOf& size_of) const {
    std::vector<Known> all;
    for (std::size_t s = 0; s < symbols_.size(); ++s) {
      Seen sizes{};
      for (std::size_t t = 0; t < kTraces; ++t) sizes[t] = size_of(s, std::min(t, count - 1)) * factors_[s];
      all.push_back({{static_cast<std::int64_t>(symbols_[s].input),
                      static_cast<std::int64_t>(symbols_[s].axis), symbols_[s].name},
                     sizes});
    }
    return all;
  }

  // The dimension whose change alone makes the graphs differ.
  [[nodiscard]] std::string guilty(const Graph& base) const {
    for (std::size_t changed = 0; changed < symbols_.size(); ++changed) {
      const auto size = [&](std::size_t s, std::size_t t) { return symbols_[s].sizes[s == changed ? t : 0]; };
      std::vector<Graph> graphs = {base};
      try {
        for (std::size_t t = 1; t < trace_count(1); ++t)
          graphs.push_back(record([&](std::size_t s) { return size(s, t); }));
        static_cast<void>(Merger(graphs, known(graphs.size(), size)).run());
      } catch (const Differs&) {
        return symbols_[changed].name;
      } catch (const Error&) {
        return symbols_[changed].name;
      }
    }
    return symbols_.front().name;
  }

  const Slots& slots_;
  const std::vector<InputSpec>& inputs_;
  const ForwardFunction& forward_;
  std::vector<Symbol> symbols_;
  std::vector<std::int64_t> factors_;
};

}  // namespace
}  // namespace graph

Graph detail::trace(const Slots& slots, const std::vector<InputSpec>& inputs,
                    const ForwardFunction& forward) {
  return graph::Tracer(slots, inputs, forward).run();
}

}  // namespace ballast
