// SPDX-License-Identifier: Apache-2.0
// ONNX files from C++ models: the forward() that runs is the one that is exported.
//
//   ballast::onnx::save(net, "net.onnx", {.inputs = {{"image", {"batch", 3, 224, 224}}}, .outputs =
//   {"logits"}});
//
// docs/onnx.md says what can be exported at which opset. Part of ballast::onnx.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; and what the functions say; nothing is written then. Owns: results are values.
// Threads: several at once, for different paths; the model is not changed. Costs: the model runs as trace()
// runs it; weights are streamed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ballast/graph.h"
#include "ballast/module.h"
#include "ballast/steps.h"

#pragma GCC visibility push(default)

namespace ballast::onnx {

/// The oldest opset that save() writes.
inline constexpr int kOldestOpset = 11;
/// The opset save() writes unless told otherwise.
inline constexpr int kDefaultOpset = 17;

/// The newest opset the installed libonnx can check.
[[nodiscard]] int newest_opset();

/// Nodes of an ONNX graph, as a custom operation's translation writes them. Values are known by their names;
/// "" is an argument left out.
class Builder {
 public:
  Builder() = default;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  virtual ~Builder() = default;

  /// That of the file that is written.
  [[nodiscard]] virtual int opset() const noexcept = 0;
  /// Adds a node and returns the names of its results.
  virtual std::vector<std::string> nodes(const std::string& op, std::vector<std::string> inputs,
                                         Attributes attributes, std::size_t results,
                                         const std::string& domain = {}) = 0;
  /// An initializer.
  virtual std::string constant(const Tensor& value) = 0;

  /// A node with one result.
  std::string node(const std::string& op, std::vector<std::string> inputs, Attributes attributes = {}) {
    return nodes(op, std::move(inputs), std::move(attributes), 1)[0];
  }
};

/// Where the weights go.
enum class External : std::uint8_t {
  when_needed,  ///< beyond protobuf's limit of 2 GB
  always,
};

/// How save() writes a model.
struct Options {
  std::vector<InputSpec> inputs;          ///< in the order forward() takes them
  std::vector<std::string> outputs = {};  ///< "output", or "output_0", … when empty
  int opset = kDefaultOpset;              ///< of ONNX's own operations, from kOldestOpset on
  bool fold_constants = true;         ///< what follows from parameters and constants alone is computed now
  bool fold_batch_norm = false;       ///< into the convolution or linear map right before it
  Precision dtype = Precision::keep;  ///< half: F32 weights are stored as F16, and computed with in F32
  External external_data = External::when_needed;  ///< weights in "<path>.data"
  std::string weights = {};  ///< a Safetensors file beside the model or below, as ballast::save() writes it,
                             ///< that holds the weights: they are not written again
  std::string doc = {};      ///< what the file says of itself
  std::map<std::string, std::string> metadata = {};  ///< more text by key
  std::string source = {};  ///< the file the weights came from: its name and SHA-256 go into the metadata
  bool overwrite = false;
};

/// What save() wrote.
struct SaveReport {
  std::size_t nodes = 0;             ///< calls of operations
  std::size_t initializers = 0;      ///< weights and constants
  std::uint64_t bytes = 0;           ///< of the model file
  std::uint64_t external_bytes = 0;  ///< in another file
  std::string external_file = {};    ///< its name
};

namespace detail {
SaveReport save(const Slots& slots, const Graph& graph, const std::string& path, const Options& options);
/// What can be said before the model is traced.
void check(const std::string& path, const Options& options);
}  // namespace detail

/// Atomic. Initializers have PyTorch's names and layouts, as in files of ballast::save(). Everything is
/// checked by ONNX's checker and its strict shape inference before the file gets its name.
/// Errc::not_exportable names every operation that cannot be exported at once, with its place in the model;
/// Errc::baked_dimension a dimension that was given a name and cannot vary; onnx_invalid what ONNX's checker
/// refuses. Errc::unsupported for an opset outside [kOldestOpset, newest_opset()], and a dtype other than
/// keep and half; invalid_argument for no inputs, or other names for results than there are; bad_name and
/// duplicate_key for names, bad_dtype for inputs ONNX cannot have; of `weights` path_escape, not_found,
/// shape_mismatch and index_mismatch when they are not the model's; already_exists without `overwrite`,
/// no_space, io_error; and what trace() throws.
template <Module Model>
SaveReport save(const Model& model, const std::string& path, const Options& options) {
  detail::check(path, options);
  return detail::save(
      ballast::detail::collect_slots(model, ballast::detail::Collector::Alternatives::held_only),
      trace(model, options.inputs), path, options);
}

/// The same for a graph of that model, traced before with the same inputs: for several opsets, say.
template <Module Model>
SaveReport save(const Model& model, const Graph& graph, const std::string& path, const Options& options) {
  return detail::save(
      ballast::detail::collect_slots(model, ballast::detail::Collector::Alternatives::held_only), graph, path,
      options);
}

/// For another function of the model than forward().
template <Module Model>
SaveReport save(const Model& model, const std::string& path, const Options& options,
                const ForwardFunction& forward) {
  detail::check(path, options);
  return detail::save(
      ballast::detail::collect_slots(model, ballast::detail::Collector::Alternatives::held_only),
      trace(model, options.inputs, forward), path, options);
}

}  // namespace ballast::onnx

#pragma GCC visibility pop
