// SPDX-License-Identifier: Apache-2.0
// From a Graph to ONNX nodes. One function for each operation of the table (src/ops/operations.h), in the
// tables of lower_*.cpp; each works on a Call and writes through a Lowering.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ballast/graph.h"
#include "ballast/onnx.h"
#include "model/save.h"
#include "onnx/file.h"
#include "ops/operations.h"

namespace ballast::onnx {

class Lowering;

/// Thrown by what cannot be exported; caught by Lowering, which collects the reasons.
struct Unexportable {
  std::string why;
};

/// One node of the graph, as its translation sees it.
class Call {
 public:
  Call(Lowering& writes_to, const GraphNode& translated) : to(writes_to), node(translated) {}

  Lowering& to;
  const GraphNode& node;

  [[nodiscard]] bool has(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] >= 0; }

  [[nodiscard]] const GraphValue& value(std::size_t i) const;
  [[nodiscard]] const GraphValue& result_value(std::size_t i = 0) const;
  /// The name of input i; "" when it was left out.
  [[nodiscard]] std::string in(std::size_t i) const;
  /// The same in another dtype.
  [[nodiscard]] std::string in(std::size_t i, DType dtype) const;
  /// F32, whatever floating dtype it has: what the operations of layers compute in.
  [[nodiscard]] std::string floats(std::size_t i) const { return in(i, DType::f32); }

  /// The dtype input i can be had in without a cast: F32 for F16 and BF16 that were computed just now.
  [[nodiscard]] DType held(std::size_t i) const;

  /// Result i of the node is this value, computed in `computed` (the result's own dtype when absent).
  void result(const std::string& name, std::optional<DType> computed = {}, std::size_t i = 0) const;

  [[nodiscard]] std::int64_t number(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] Dims list(std::string_view name) const;
  [[nodiscard]] const std::vector<double>& reals(std::string_view name) const;
  /// A number that may follow from sizes.
  [[nodiscard]] SizeExpr size(std::string_view name, std::size_t index = 0) const;
  [[nodiscard]] std::vector<SizeExpr> sizes(std::string_view name) const;
  [[nodiscard]] bool is_symbolic(std::string_view name) const;

  /// "dim", counted from the start, of an input's rank.
  [[nodiscard]] std::int64_t axis(std::string_view name, std::size_t i = 0) const;

  [[noreturn]] void refuse(std::string why) const { throw Unexportable{std::move(why)}; }

 private:
  [[nodiscard]] const Attribute& attribute(std::string_view name) const;
};

using Translate = void (*)(const Call& call);
using TranslateTable = std::unordered_map<const Operation*, Translate>;

// One for each file lower_*.cpp.
void add_elementwise(TranslateTable& table);
void add_activations(TranslateTable& table);
void add_movement(TranslateTable& table);
void add_indexing(TranslateTable& table);
void add_reductions(TranslateTable& table);
void add_layers(TranslateTable& table);
void add_norms(TranslateTable& table);
void add_images(TranslateTable& table);
void add_recurrent(TranslateTable& table);
void add_attention(TranslateTable& table);
void add_signals(TranslateTable& table);
[[nodiscard]] const TranslateTable& translations();

/// What a parameter is in the file, and the tensors of the file.
struct Weights {
  Checkpoint tensors;
  std::vector<SavedAs> saved_as;  // of each slot
};

class Lowering final : public Builder {
 public:
  Lowering(const Graph& graph, const Weights& weights, const Options& options);

  /// Errc::not_exportable with all that cannot be.
  [[nodiscard]] FileModel run();

  // For translations.
  [[nodiscard]] int opset() const noexcept override { return options_.opset; }

  std::vector<std::string> nodes(const std::string& op, std::vector<std::string> inputs,
                                 Attributes attributes, std::size_t results,
                                 const std::string& domain = {}) override;
  std::string constant(const Tensor& value) override;

  [[nodiscard]] const GraphValue& value(std::int64_t id) const {
    return graph_.values[static_cast<std::size_t>(id)];
  }

  /// The name of a value, written when it is asked for first.
  [[nodiscard]] std::string name_of(std::int64_t id);
  /// The same transposed, without a node for parameters that lie in the file that way.
  [[nodiscard]] std::string transposed(std::int64_t id);
  /// True when `transposed` costs no node.
  [[nodiscard]] bool lies_transposed(std::int64_t id) const;
  /// A known value of this dtype; undefined when it is not known or varies with sizes.
  [[nodiscard]] Tensor known(std::int64_t id) const;
  void set(std::int64_t id, const std::string& name) { names_[static_cast<std::size_t>(id)] = name; }

  /// An F16 or BF16 value as it was computed, in F32, for those who compute on: no cast there and back. Empty
  /// when there is none.
  [[nodiscard]] const std::string& wide(std::int64_t id) const { return wide_[static_cast<std::size_t>(id)]; }

  void set_wide(std::int64_t id, const std::string& name) { wide_[static_cast<std::size_t>(id)] = name; }

  [[nodiscard]] std::string cast(const std::string& name, DType from, DType to);
  [[nodiscard]] std::string ints(const Dims& numbers);    ///< I64 [n]
  [[nodiscard]] std::string scalar(std::int64_t number);  ///< I64 []
  [[nodiscard]] std::string real(double number, DType dtype = DType::f32);
  [[nodiscard]] std::string reals(const std::vector<float>& numbers);  ///< F32 [n]

  /// I64 [1]
  [[nodiscard]] std::string size(const SizeExpr& size);
  /// I64 []
  [[nodiscard]] std::string size_scalar(const SizeExpr& size);
  /// I64 [n]
  [[nodiscard]] std::string sizes(const std::vector<SizeExpr>& sizes);
  /// The sizes of a value's dimensions.
  [[nodiscard]] std::string shape_of(std::int64_t id);

  /// What `make` returned for this key before, or returns now: pieces that several nodes use.
  [[nodiscard]] std::string shared(const std::string& key, const std::function<std::string()>& make);

  // Operators whose form changed between opsets.
  [[nodiscard]] std::string unsqueeze(const std::string& x, const Dims& axes);
  [[nodiscard]] std::string squeeze(const std::string& x, const Dims& axes);
  /// Without axes: all.
  [[nodiscard]] std::string reduce(const std::string& op, const std::string& x, const Dims& axes,
                                   bool keepdims);
  [[nodiscard]] std::string slice(const std::string& x, const std::string& starts, const std::string& ends,
                                  const std::string& axes, const std::string& steps = {});
  [[nodiscard]] std::string slice(const std::string& x, std::int64_t axis, std::int64_t start,
                                  std::int64_t end);
  [[nodiscard]] std::string reshape(const std::string& x, const Dims& shape);

  [[noreturn]] static void refuse(std::string why) { throw Unexportable{std::move(why)}; }

 private:
  void lower(const GraphNode& node);
  void find_scopes();
  void lower_own(const GraphNode& node);
  void mark_foldable();
  [[nodiscard]] std::string parameter(const GraphValue& value, bool turned);
  [[nodiscard]] std::string folded(const GraphValue& value);
  [[nodiscard]] std::string weight_name(const std::string& name);
  [[nodiscard]] Tensor storable(const Tensor& tensor) const;
  [[nodiscard]] std::string initializer(const std::string& wanted, const Tensor& tensor);
  [[nodiscard]] std::string unique(const std::string& wanted);
  void name_outputs(FileModel& model);
  static void drop_unused(FileModel& model);
  void describe_values(FileModel& model) const;

  struct Reason {
    std::string label;  // of the operation
    std::string why;
  };

  [[noreturn]] void refuse_all(const std::vector<Reason>& reasons) const;
  [[nodiscard]] std::vector<FileDim> dims_of(const GraphValue& value) const;
  [[nodiscard]] std::string dim(const SizeExpr::Dim& dim);
  [[nodiscard]] std::string term(const SizeExpr::Term& term);
  [[nodiscard]] std::string quotient(const std::string& sum, const SizeExpr& expr);

  Graph graph_;
  const Weights& weights_;
  const Options& options_;
  FileModel model_;
  std::vector<std::string> names_;  // of the graph's values; "" before they have one
  std::vector<std::string> wide_;
  std::vector<bool> fixed_;          // known, and the same whatever the sizes
  std::vector<std::string> scopes_;  // of the graph's nodes: where in the model
  std::set<std::string> used_;
  std::set<std::string> weights_taken_;
  std::unordered_map<std::string, std::string> cache_;  // pieces several nodes share
  std::string place_;                                   // prefix of names: the node being lowered
};

}  // namespace ballast::onnx
