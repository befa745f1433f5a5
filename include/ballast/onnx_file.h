// SPDX-License-Identifier: Apache-2.0
// What an ONNX file says about itself, without its weights: what goes in and comes out, which operators it
// needs, and where its tensors lie. The weights are open()'s business (io.h), which lists them like those of
// any other file; writing ONNX is onnx.h's. Part of ballast::import.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error; and what the
// functions say. Owns: results are values. Threads: every function may be called from several at once. Costs:
// the structure is read once, in proportion to its nodes; weights are not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ballast/detail/compiler.h"

#pragma GCC visibility push(default)

namespace ballast::onnx_file {

/// A size, a name for one that is known when the model runs, or neither.
struct Dimension {
  std::optional<std::int64_t> size = {};  ///< when it is a number
  std::string symbol = {};                ///< when it is a name
};

/// An input or an output.
struct ValueInfo {
  std::string name = {};  ///< as nodes call it
  /// "F32"; ONNX's own word for what is no dtype of Ballast ("STRING"); "sequence(F32)", "map(I64, F32)",
  /// "optional(…)", "sparse(F32)", "opaque"; empty when the file does not say.
  std::string type = {};
  std::optional<std::vector<Dimension>> shape = {};  ///< none: not even the rank is known
};

/// A set of operations the model uses.
struct Opset {
  std::string domain = {};   ///< empty: ONNX's own, ai.onnx
  std::int64_t version = 0;  ///< of that set
};

/// How often an operator is used.
struct OperatorCount {
  std::string domain = {};  ///< empty: ONNX's own
  /// "Conv"
  std::string name = {};
  std::uint64_t count = 0;  ///< nodes, those of subgraphs and functions included
};

/// Tensors, counted.
struct TensorCount {
  std::uint64_t tensors = 0;  ///< how many there are
  std::uint64_t bytes = 0;    ///< what they take
};

/// A file with weights beside the model.
struct ExternalFile {
  std::string location = {};                     ///< as the model says it, relative to its own folder
  TensorCount holds = {};                        ///< what the model takes from it
  std::optional<std::uint64_t> file_bytes = {};  ///< none: there is no such file in the folder
};

/// What an ONNX model says of itself and holds.
struct Info {
  std::int64_t ir_version = 0;          ///< of the file's form
  std::string producer_name = {};       ///< who wrote it
  std::string producer_version = {};    ///< and which version of it
  std::string domain = {};              ///< the writer's own
  std::int64_t model_version = 0;       ///< the writer's own
  std::string doc_string = {};          ///< for people
  std::string graph_name = {};          ///< of the main graph
  std::vector<Opset> opsets = {};       ///< that the model uses
  std::vector<ValueInfo> inputs = {};   ///< without those that are there only to give an initializer's type
  std::vector<ValueInfo> outputs = {};  ///< of the main graph
  std::vector<OperatorCount> operators = {};  ///< the most frequent first
  std::vector<OperatorCount> functions = {};  ///< of the file's own; count is of their nodes
  std::uint64_t nodes = 0;                    ///< in all graphs
  std::uint64_t subgraphs = 0;                ///< bodies of If, Loop, Scan, at any depth
  TensorCount initializers = {};              ///< of all graphs; those in other files included
  TensorCount constants = {};                 ///< tensors of Constant nodes
  /// Tensors, as open() lists them, that are no weights: what only says how nodes work (shapes, axes,
  /// bounds), numbers and indices an exporter wrote down, in whichever of the two they lie.
  std::vector<std::string> constant_names = {};
  std::uint64_t skipped = 0;                      ///< tensors Ballast has no dtype for: text, 4-bit integers
  std::vector<ExternalFile> external_files = {};  ///< in the order they are named
  std::map<std::string, std::string> metadata = {};  ///< metadata_props
};

/// Reads the structure alone, never the weights; files with external data need not be there.
/// Errc::unknown_format when it is no ONNX file, else what open() would say: file_not_found, bad_onnx,
/// too_many, too_deep, ….
[[nodiscard]] Info read_info(const std::string& path);

/// One call of an operator.
struct Node {
  std::string name = {};                  ///< may be empty
  std::string domain = {};                ///< empty: ONNX's own
  std::string op = {};                    ///< "Conv"
  std::vector<std::string> inputs = {};   ///< names of values; empty for one that is left out
  std::vector<std::string> outputs = {};  ///< names of values
};

/// Nodes of the main graph from number `first` on, at most `most` of them. Errors as read_info().
[[nodiscard]] std::vector<Node> read_nodes(const std::string& path, std::uint64_t first, std::size_t most);

}  // namespace ballast::onnx_file

#pragma GCC visibility pop
