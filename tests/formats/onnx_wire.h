// SPDX-License-Identifier: Apache-2.0
// ONNX files for tests, put together field by field (the numbers are onnx.proto's).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::onnx_wire {

inline std::string varint(std::uint64_t value) {
  std::string text;
  for (; value > 127; value >>= 7U) text += static_cast<char>((value & 127U) | 128U);
  return text + static_cast<char>(value);
}

inline std::string number(std::uint64_t field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}

inline std::string block(std::uint64_t field, std::string_view content) {
  return varint(field << 3U | 2U) + varint(content.size()) + std::string(content);
}

/// A TensorProto; `data` is ready fields.
inline std::string tensor(std::string_view name, std::uint64_t type, const std::vector<std::uint64_t>& dims,
                          std::string_view data) {
  std::string text;
  for (const std::uint64_t dim : dims) text += number(1, dim);
  return text + number(2, type) + block(8, name) + std::string(data);
}

inline std::string raw(std::string_view bytes) {
  return block(9, bytes);
}

inline std::string entry(std::string_view key, std::string_view value) {
  return block(1, key) + block(2, value);
}

inline std::string external(std::string_view location, std::string_view offset = {},
                            std::string_view length = {}) {
  std::string text = block(13, entry("location", location));
  if (!offset.empty()) text += block(13, entry("offset", offset));
  if (!length.empty()) text += block(13, entry("length", length));
  return text + number(14, 1);
}

/// A model whose graph is these fields.
inline std::string model(std::string_view graph) {
  return number(1, 8) + block(2, "tests") + block(7, graph) + block(8, number(2, 17));
}

/// A model with these initializers.
inline std::string model_of(const std::vector<std::string>& tensors) {
  std::string graph;
  for (const std::string& one : tensors) graph += block(5, one);
  return model(graph);
}

}  // namespace ballast::onnx_wire
