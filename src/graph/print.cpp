// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <ostream>

#include "ballast/error.h"
#include "ballast/graph.h"

namespace ballast {
namespace {

std::string text_of(const SizeExpr::Dim& dim) {
  return dim.name.empty() ? fmt::format("%{}.{}", dim.value, dim.axis) : display(dim.name);
}

std::string text_of(const SizeExpr::Term& term) {
  std::string text = term.factor == 1 ? "" : (term.factor == -1 ? "-" : std::to_string(term.factor));
  for (const SizeExpr::Dim& dim : term.dims) {
    if (!text.empty() && text != "-") text += '*';
    text += text_of(dim);
  }
  for (const SizeExpr& part : term.rounded)
    text += (text.empty() || text == "-" ? "" : "*") + to_string(part);
  return text;
}

const SizeExpr* symbolic(const GraphNode& node, const std::string& name, std::size_t index) {
  for (const SymbolicAttribute& one : node.symbolic)
    if (one.attribute == name && one.index == index) return &one.size;
  return nullptr;
}

std::string text_of(const GraphNode& node, const Attribute& attribute) {
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    const SizeExpr* size = symbolic(node, attribute.name, 0);
    return size != nullptr ? to_string(*size) : std::to_string(*number);
  }
  if (const auto* number = std::get_if<double>(&attribute.value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&attribute.value)) return quoted(*text);
  std::string list;
  if (const auto* dims = std::get_if<Dims>(&attribute.value)) {
    for (std::size_t i = 0; i < dims->size(); ++i) {
      const SizeExpr* size = symbolic(node, attribute.name, i);
      list += (i == 0 ? "" : ", ") + (size != nullptr ? to_string(*size) : std::to_string((*dims)[i]));
    }
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&attribute.value)) {
    for (const double number : *numbers) list += fmt::format("{}{}", list.empty() ? "" : ", ", number);
  } else {
    for (const std::string& text : std::get<std::vector<std::string>>(attribute.value))
      list += (list.empty() ? "" : ", ") + quoted(text);
  }
  return "[" + list + "]";
}

std::string form(const GraphValue& value) {
  std::string dims;
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    if (i > 0) dims += ", ";
    dims += i < value.sizes.size() ? to_string(value.sizes[i]) : std::to_string(value.shape[i]);
  }
  return fmt::format("{} [{}]", info(value.dtype).code, dims);
}

std::string reference(const Graph& graph, std::int64_t id) {
  if (id < 0) return "_";
  const GraphValue& value = graph.values[static_cast<std::size_t>(id)];
  switch (value.kind) {
    case GraphValue::Kind::input:
    case GraphValue::Kind::parameter:
      return display(value.name);
    case GraphValue::Kind::constant:
      if (!value.number.is_constant()) return to_string(value.number);
      if (value.shape.empty()) return fmt::format("{}", value.tensor.item());
      return fmt::format("constant%{}", id);
    case GraphValue::Kind::result:
      break;
  }
  return fmt::format("%{}", id);
}

}  // namespace

std::string to_string(const SizeExpr& size) {
  std::string text;
  for (const SizeExpr::Term& term : size.terms) {
    if (!text.empty() && term.factor >= 0) text += '+';
    text += text_of(term);
  }
  if (size.constant != 0 || text.empty())
    text += (text.empty() || size.constant < 0 ? "" : "+") + std::to_string(size.constant);
  return size.divisor == 1 ? text : fmt::format("({})/{}", text, size.divisor);
}

std::ostream& operator<<(std::ostream& out, const Graph& graph) {
  for (const std::int64_t id : graph.inputs)
    out << "input " << reference(graph, id) << " : " << form(graph.values[static_cast<std::size_t>(id)])
        << '\n';
  for (const GraphNode& node : graph.nodes) {
    std::string results;
    std::string forms;
    for (const std::int64_t id : node.outputs) {
      results += (results.empty() ? "" : ", ") + reference(graph, id);
      if (id >= 0) forms += (forms.empty() ? "" : ", ") + form(graph.values[static_cast<std::size_t>(id)]);
    }
    out << results << " = " << to_string(*node.operation) << '(';
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      out << (i == 0 ? "" : ", ") << reference(graph, node.inputs[i]);
    out << ')';
    for (const Attribute& attribute : node.attributes)
      out << ' ' << attribute.name << '=' << text_of(node, attribute);
    out << " : " << forms;
    if (!node.place.empty()) out << "  # " << node.place;
    out << '\n';
  }
  out << "output";
  for (const std::int64_t id : graph.outputs) out << ' ' << reference(graph, id);
  return out << '\n';
}

}  // namespace ballast
