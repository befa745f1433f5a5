// SPDX-License-Identifier: Apache-2.0
// The walk through a model: graph, nodes, subgraphs, functions. Tensors are handed on as they are met;
// everything else is small and collected.
#pragma once

#include <cstdint>
#include <functional>

#include "ballast/onnx_file.h"
#include "formats/onnx/tensor.h"

namespace ballast::onnx_file {

// Far beyond any real model; what is beyond them is Errc::too_many, too_deep or header_too_large.
inline constexpr std::uint64_t kMaxTensors = 1'000'000;
inline constexpr std::uint64_t kMaxNodes = 10'000'000;
inline constexpr std::uint64_t kMaxListed =
    100'000;                               // inputs, outputs, operators, functions, subgraphs, metadata
inline constexpr int kMaxGraphDepth = 32;  // protobuf's own limit of 100 messages is 33 graphs
inline constexpr int kMaxTypeDepth = 32;
inline constexpr std::uint64_t kMaxTextBytes = 100'000'000;

enum class Origin : std::uint8_t { initializer, constant };

struct SparseDescription {
  TensorDescription values;  ///< its name is that of the whole
  TensorDescription indices;
  std::vector<std::int64_t> shape;
  Range message;
};

/// Names are unique in the whole file by the time they get here.
struct TensorSink {
  std::function<void(const TensorDescription&, Origin)> tensor;
  std::function<void(const SparseDescription&, Origin)> sparse;
};

/// What the file says but for external_files[].file_bytes.
[[nodiscard]] Info read_model(const ByteSource& source, const TensorSink& sink);

/// The type and shape of an input or output.
[[nodiscard]] ValueInfo read_value_info(WireReader& wire, Range message);

}  // namespace ballast::onnx_file
