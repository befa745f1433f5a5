// SPDX-License-Identifier: Apache-2.0
#include "graph/merge.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/fail.h"

namespace ballast::graph {
namespace {

std::string label_of(const GraphNode& node) {
  const std::string name = to_string(*node.operation);
  return node.place.empty() ? name : node.place + ": " + name;
}

[[noreturn]] void differ(const GraphNode& node, std::string what) {
  throw Differs{label_of(node), std::move(what)};
}

void check_structure(const Graph& base, const Graph& other) {
  for (std::size_t i = 0; i < std::min(base.nodes.size(), other.nodes.size()); ++i) {
    const GraphNode& a = base.nodes[i];
    const GraphNode& b = other.nodes[i];
    bool same = a.operation == b.operation && a.inputs == b.inputs && a.outputs == b.outputs &&
                a.attributes.size() == b.attributes.size();
    for (std::size_t k = 0; same && k < a.outputs.size(); ++k) {
      if (a.outputs[k] < 0) continue;
      const GraphValue& x = base.values[static_cast<std::size_t>(a.outputs[k])];
      const GraphValue& y = other.values[static_cast<std::size_t>(b.outputs[k])];
      same = x.dtype == y.dtype && x.shape.size() == y.shape.size();
    }
    if (!same) differ(a, fmt::format("the model does something else here ({})", to_string(*b.operation)));
  }
  if (base.nodes.size() != other.nodes.size() || base.outputs != other.outputs ||
      base.values.size() != other.values.size()) {
    throw Differs{"trace", fmt::format("the model takes {} operations instead of {}", other.nodes.size(),
                                       base.nodes.size())};
  }
}

void add_attribute(Numbers& numbers, const GraphNode& node, const Attribute& a, const Attribute& b) {
  if (a.name == b.name && a.value.index() == b.value.index()) {
    if (const auto* number = std::get_if<std::int64_t>(&b.value)) return numbers.push_back(*number);
    if (const auto* dims = std::get_if<Dims>(&b.value)) {
      if (dims->size() != std::get<Dims>(a.value).size())
        differ(node, fmt::format("{} has another length", a.name));
      numbers.insert(numbers.end(), dims->begin(), dims->end());
      return;
    }
  }
  if (!(a == b)) differ(node, fmt::format("{} is a number that depends on a size", a.name));
}

bool same_numbers(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size_bytes())) == 0;
}

bool is_number(const GraphValue& value) {
  return value.kind == GraphValue::Kind::constant && value.shape.empty();
}

// A number the model's own code made is an integer, or the same always.
void add_constant(Numbers& numbers, const GraphNode& node, const GraphValue& a, const GraphValue& b) {
  if (a.kind != b.kind) differ(node, "an operand comes from elsewhere");
  if (a.kind != GraphValue::Kind::constant) return;
  const bool same = same_numbers(a.tensor, b.tensor);
  if (!is_number(a)) {
    if (same) return;
    differ(node, a.shape == b.shape
                     ? "an operand was computed by the model's own code and differs with the size"
                     : "an operand was made by the model's own code and its shape differs with the size; "
                       "zeros(), full() and arange() can follow it");
  }
  const double number = b.tensor.item();
  const bool whole = number == std::floor(number) && std::abs(number) <= 0x1p53;
  const double before = a.tensor.item();
  if (!same && (!whole || before != std::floor(before)))
    differ(node, fmt::format("an operand is a number that depends on a size ({} and {})", before, number));
  numbers.push_back(whole ? static_cast<std::int64_t>(number) : 0);
}

}  // namespace

Numbers numbers_of(const Graph& base, const Graph& other) {
  check_structure(base, other);
  Numbers numbers;
  for (std::size_t i = 0; i < base.nodes.size(); ++i) {
    const GraphNode& node = base.nodes[i];
    for (const std::int64_t id : node.inputs) {
      if (id < 0) continue;
      const auto place = static_cast<std::size_t>(id);
      add_constant(numbers, node, base.values[place], other.values[place]);
    }
    for (std::size_t a = 0; a < node.attributes.size(); ++a)
      add_attribute(numbers, node, node.attributes[a], other.nodes[i].attributes[a]);
    for (const std::int64_t id : node.outputs) {
      if (id < 0) continue;
      const Shape& shape = other.values[static_cast<std::size_t>(id)].shape;
      numbers.insert(numbers.end(), shape.begin(), shape.end());
    }
  }
  return numbers;
}

// NOLINTNEXTLINE(modernize-pass-by-value): the header has it so
Merger::Merger(const Graph& base, const std::vector<Numbers>& traces, const std::vector<Known>& symbols)
    : traces_(traces), out_(base) {
  for (const Known& symbol : symbols) {
    solver_.add(symbol);
    symbols_.add(symbol);
  }
  for (GraphValue& value : out_.values) {
    if (value.kind == GraphValue::Kind::result) continue;
    for (const std::int64_t size : value.shape) value.sizes.push_back({size, {}, 1});
  }
}

Seen Merger::next() {
  Seen seen;
  for (const Numbers& numbers : traces_) seen.push_back(numbers[at_]);
  ++at_;
  return seen;
}

SizeExpr Merger::solved(const GraphNode& node, const std::string& what, const Seen& seen) {
  auto found = solver_.solve(seen);
  if (!found)
    throw Differs{label_of(node), what + " does not follow from sizes in a way that can be told", seen};
  if (!found->is_constant()) solver_.add({*found, seen});
  return *found;
}

void Merger::merge_attributes(GraphNode& node) {
  for (const Attribute& attribute : node.attributes) {
    const auto* dims = std::get_if<Dims>(&attribute.value);
    if (dims == nullptr && !std::holds_alternative<std::int64_t>(attribute.value)) continue;
    for (std::size_t k = 0; k < (dims != nullptr ? dims->size() : 1); ++k) {
      SizeExpr size = solved(node, attribute.name, next());
      if (!size.is_constant()) node.symbolic.push_back({attribute.name, k, std::move(size)});
    }
  }
}

Graph Merger::run() {
  for (GraphNode& node : out_.nodes) {
    for (const std::int64_t id : node.inputs) {
      if (id < 0 || !is_number(out_.values[static_cast<std::size_t>(id)])) continue;
      SizeExpr number = solved(node, "an operand", next());
      if (!number.is_constant()) out_.values[static_cast<std::size_t>(id)].number = std::move(number);
    }
    merge_attributes(node);
    for (const std::int64_t id : node.outputs)
      if (id >= 0) merge_dims(id);
  }
  return std::move(out_);
}

void Merger::merge_dims(std::int64_t id) {
  GraphValue& value = out_.values[static_cast<std::size_t>(id)];
  value.sizes.clear();
  for (std::size_t axis = 0; axis < value.shape.size(); ++axis) {
    const Seen seen = next();
    SizeExpr itself;
    itself.terms.push_back({1, {{id, static_cast<std::int64_t>(axis), {}}}, {}});
    auto called = called_.find(seen);
    if (called == called_.end()) called = called_.emplace(seen, symbols_.solve(seen).value_or(itself)).first;
    value.sizes.push_back(called->second);
    solver_.add({itself, seen});
  }
}

}  // namespace ballast::graph
