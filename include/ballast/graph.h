// SPDX-License-Identifier: Apache-2.0
// A model's forward() as a graph of operations. trace() calls the very forward() that runs, with tensors that
// remember which operation made them; the sizes of dimensions with a name may differ from call to call, and
// the graph says how everything follows from them. Part of ballast::nn; ballast/onnx.h writes a graph to a
// file.
//
// Throws: what trace() says. Owns: a graph keeps the tensors whose values it knows; operations' rows live as
// long as the program. Threads: several at once, each traces what its own thread calls. Costs: one run of
// forward() by shapes, and some more where a dimension has a name; what depends on the inputs alone is not
// computed.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ballast/detail/function.h"
#include "ballast/detail/slots.h"
#include "ballast/module.h"
#include "ballast/operation.h"
#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

/// A size of an input: a number, or a name for one that may differ from call to call.
struct InputDim {
  std::int64_t size = 0;         ///< when it has no name
  std::string name = {};         ///< "batch"; the same name means the same size, in all inputs
  std::int64_t multiple_of = 0;  ///< sizes the model takes, when trace() should not find out by itself
  std::int64_t at_least = 1;     ///< and the smallest of them
  std::int64_t at_most = 0;      ///< and the largest; 0: no end

  /// A size that stays.
  template <std::integral Number>
  InputDim(Number number) : size(number) {}  // {"batch", 3}

  /// A size by name, with the sizes the model takes.
  InputDim(const char* symbol, std::int64_t multiple = 0, std::int64_t least = 1, std::int64_t most = 0)
      : name(symbol), multiple_of(multiple), at_least(least), at_most(most) {}

  /// The same for a std::string.
  InputDim(std::string symbol, std::int64_t multiple = 0, std::int64_t least = 1, std::int64_t most = 0)
      : name(std::move(symbol)), multiple_of(multiple), at_least(least), at_most(most) {}
};

/// An input of a model that is traced.
struct InputSpec {
  std::string name;             ///< what the graph calls it
  std::vector<InputDim> shape;  ///< numbers and names
  DType dtype = DType::f32;     ///< of its elements
};

/// An integer that follows from sizes of the inputs: floor((constant + sum of terms) / divisor).
struct SizeExpr {
  /// Dimension `axis` of a value of the graph.
  struct Dim {
    std::int64_t value = 0;  ///< position in Graph::values
    std::int64_t axis = 0;   ///< which dimension of it
    std::string name = {};   ///< of an input's dimension
  };

  /// A product.
  struct Term {
    std::int64_t factor = 1;             ///< the number before it
    std::vector<Dim> dims;               ///< their product
    std::vector<SizeExpr> rounded = {};  ///< times these, each rounded down by its divisor
  };

  std::int64_t constant = 0;     ///< what is added
  std::vector<Term> terms = {};  ///< summed up
  std::int64_t divisor = 1;      ///< what the sum is divided by

  /// The inputs' sizes do not matter.
  [[nodiscard]] bool is_constant() const noexcept { return terms.empty(); }
};

/// "2*seq+1"
[[nodiscard]] std::string to_string(const SizeExpr& size);

/// A tensor of the graph.
struct GraphValue {
  /// Where a value comes from.
  enum class Kind : std::uint8_t { input, parameter, constant, result };

  Kind kind = Kind::result;          ///< where it comes from
  std::string name;                  ///< of an input or a parameter: its path
  DType dtype = DType::f32;          ///< of its elements
  Shape shape;                       ///< as traced first
  std::vector<SizeExpr> sizes = {};  ///< the same as it follows from the inputs' sizes; a dimension itself
                                     ///< where nothing simple fits
  bool known = false;                ///< follows from parameters and constants alone
  Tensor tensor = {};                ///< of a known value, as traced first
  std::size_t slot = 0;              ///< of a parameter: its place in the model's Slots
  SizeExpr number = {};              ///< of a constant that is a size: what it follows from
};

/// A number among the attributes that follows from the inputs' sizes.
struct SymbolicAttribute {
  std::string attribute;  ///< its name
  std::size_t index = 0;  ///< in a list
  SizeExpr size;          ///< what it is
};

/// One call of an operation.
struct GraphNode {
  const Operation* operation = nullptr;          ///< its row: operation->name is "conv"
  std::vector<std::int64_t> inputs;              ///< positions in Graph::values; -1 for an argument left out
  std::vector<std::int64_t> outputs;             ///< positions in Graph::values
  Attributes attributes;                         ///< numbers as traced first
  std::vector<SymbolicAttribute> symbolic = {};  ///< numbers that follow from the inputs' sizes
  std::string place = {};                        ///< "layer1.0.conv1 (Conv2d)"; empty outside layers
};

/// What a model does with its inputs, as trace() saw it.
struct Graph {
  std::vector<GraphValue> values;     ///< inputs, parameters, constants and results
  std::vector<GraphNode> nodes;       ///< each after those it takes values from
  std::vector<std::int64_t> inputs;   ///< positions in values, in the order they were given
  std::vector<std::int64_t> outputs;  ///< positions in values, in the order of forward()
  bool dynamic = false;               ///< some dimension has a name
};

/// One line for each value and node: "%7 = conv(%3, conv1.weight) stride=[2, 2] : F32 [batch, 64, 112, 112]".
std::ostream& operator<<(std::ostream& out, const Graph& graph);

/// As operator<<.
inline void print(const Graph& graph, std::ostream& out) {
  out << graph;
}

/// A model without its struct: inputs to outputs.
using ForwardFunction = Function<std::vector<Tensor>(std::span<const Tensor>)>;

namespace detail {

[[nodiscard]] Graph trace(const Slots& slots, const std::vector<InputSpec>& inputs,
                          const ForwardFunction& forward);

/// All tensors of a result, in order: a Tensor, a list, a tuple, a struct.
template <class Result>
std::vector<Tensor> tensors_of(const Result& result) {
  if constexpr (std::is_same_v<Result, Tensor>) {
    return {result};
  } else {
    std::vector<Tensor> tensors;
    for (const Slot& slot : collect_slots(result, Collector::Alternatives::held_only).slots)
      if (slot.tensor->defined()) tensors.push_back(*slot.tensor);
    return tensors;
  }
}

template <class Model, std::size_t... I>
std::vector<Tensor> call_forward(const Model& model, std::span<const Tensor> inputs,
                                 std::index_sequence<I...>) {
  if constexpr (requires { model.forward(inputs[I]...); })
    return tensors_of(model.forward(inputs[I]...));
  else
    return {};
}

/// Empty when forward() does not take that many tensors.
template <class Model>
std::vector<Tensor> call_forward(const Model& model, std::span<const Tensor> inputs) {
  switch (inputs.size()) {
    case 1:
      return call_forward(model, inputs, std::make_index_sequence<1>{});
    case 2:
      return call_forward(model, inputs, std::make_index_sequence<2>{});
    case 3:
      return call_forward(model, inputs, std::make_index_sequence<3>{});
    case 4:
      return call_forward(model, inputs, std::make_index_sequence<4>{});
    case 5:
      return call_forward(model, inputs, std::make_index_sequence<5>{});
    case 6:
      return call_forward(model, inputs, std::make_index_sequence<6>{});
    default:
      return {};
  }
}

}  // namespace detail

/// The graph of model.forward(), which is called with made-up inputs: once, or several times with other sizes
/// when some dimension has a name. The model must have its weights; it is not changed. Errors:
/// Errc::traced_value when the model's code reads a value that depends on the inputs, Errc::baked_dimension
/// when a named dimension cannot vary; Errc::invalid_argument for no inputs, sizes below 1, a weight without
/// data, and where forward() takes another number of tensors; bad_name and duplicate_key for names of inputs,
/// too_many for names of dimensions; and what the model's operations throw.
template <Module Model>
[[nodiscard]] Graph trace(const Model& model, const std::vector<InputSpec>& inputs) {
  return detail::trace(
      detail::collect_slots(model, detail::Collector::Alternatives::held_only), inputs,
      [&model](std::span<const Tensor> tensors) { return detail::call_forward(model, tensors); });
}

/// The same for another function of the model than forward().
template <Module Model>
[[nodiscard]] Graph trace(const Model& model, const std::vector<InputSpec>& inputs,
                          const ForwardFunction& forward) {
  return detail::trace(detail::collect_slots(model, detail::Collector::Alternatives::held_only), inputs,
                       forward);
}

}  // namespace ballast

#pragma GCC visibility pop
