// SPDX-License-Identifier: Apache-2.0
// What an ONNX file says about itself, without its weights: what goes in and comes out, which operators it
// needs, and where its tensors lie. The weights are open()'s business (io.h), which lists them like those of
// any other file; writing ONNX is onnx.h's. Part of ballast::import.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace ballast::onnx_file {

/// A size, a name for one that is known when the model runs, or neither.
struct Dimension {
  std::optional<std::int64_t> size = {};
  std::string symbol = {};
};

struct ValueInfo {
  std::string name = {};
  /// "F32"; ONNX's own word for what is no dtype of Ballast ("STRING"); "sequence(F32)", "map(I64, F32)",
  /// "optional(…)", "sparse(F32)", "opaque"; empty when the file does not say.
  std::string type = {};
  std::optional<std::vector<Dimension>> shape = {};  ///< none: not even the rank is known
};

struct Opset {
  std::string domain = {};  ///< empty: ONNX's own, ai.onnx
  std::int64_t version = 0;
};

struct OperatorCount {
  std::string domain = {};
  std::string name = {};
  std::uint64_t count = 0;  ///< nodes, those of subgraphs and functions included
};

struct TensorCount {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

struct ExternalFile {
  std::string location = {};  ///< as the model says it, relative to its own folder
  TensorCount holds = {};
  std::optional<std::uint64_t> file_bytes = {};  ///< none: there is no such file in the folder
};

struct Info {
  std::int64_t ir_version = 0;
  std::string producer_name = {};
  std::string producer_version = {};
  std::string domain = {};
  std::int64_t model_version = 0;
  std::string doc_string = {};
  std::string graph_name = {};
  std::vector<Opset> opsets = {};
  std::vector<ValueInfo> inputs = {};  ///< without those that are there only to give an initializer's type
  std::vector<ValueInfo> outputs = {};
  std::vector<OperatorCount> operators = {};  ///< the most frequent first
  std::vector<OperatorCount> functions = {};  ///< of the file's own; count is of their nodes
  std::uint64_t nodes = 0;
  std::uint64_t subgraphs = 0;    ///< bodies of If, Loop, Scan, at any depth
  TensorCount initializers = {};  ///< of all graphs; those in other files included
  TensorCount constants = {};     ///< tensors of Constant nodes
  /// Tensors, as open() lists them, that are no weights: what only says how nodes work (shapes, axes,
  /// bounds), numbers and indices an exporter wrote down, in whichever of the two they lie.
  std::vector<std::string> constant_names = {};
  std::uint64_t skipped = 0;  ///< tensors Ballast has no dtype for: text, 4-bit integers
  std::vector<ExternalFile> external_files = {};
  std::map<std::string, std::string> metadata = {};  ///< metadata_props
};

/// Reads the structure alone, never the weights; files with external data need not be there.
/// Errc::unknown_format when it is no ONNX file, else what open() would say.
[[nodiscard]] Info read_info(const std::string& path);

struct Node {
  std::string name = {};
  std::string domain = {};  ///< empty: ONNX's own
  std::string op = {};      ///< "Conv"
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
};

/// Nodes of the main graph from number `first` on, at most `most` of them. Errors as read_info().
[[nodiscard]] std::vector<Node> read_nodes(const std::string& path, std::uint64_t first, std::size_t most);

}  // namespace ballast::onnx_file

#pragma GCC visibility pop
