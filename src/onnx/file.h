// SPDX-License-Identifier: Apache-2.0
// An ONNX model before it is a protocol buffer: what lowering makes, and the files that see onnx.pb.h write.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ballast/detail/attribute.h"
#include "ballast/tensor.h"

namespace ballast::onnx {

struct Node {
  std::string op;
  std::string domain;
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  Attributes attributes;
};

/// Where an initializer's bytes lie when they are not in the model file.
struct ExternalSpan {
  std::string location;
  std::uint64_t offset = 0;
  std::string sha1 = {};  ///< of the whole file; empty: not said
};

struct Initializer {
  std::string name;
  Tensor tensor;
  bool is_weight = false;  ///< a parameter of the model, as ballast::save() would write it
  std::optional<ExternalSpan> external = {};
};

/// A dimension of a graph's input or output: a number, a name, or nothing known (-1 without a name).
struct FileDim {
  std::int64_t size = -1;
  std::string name = {};
};

struct FileValue {
  std::string name;
  DType dtype = DType::f32;
  std::vector<FileDim> shape;
};

struct FileModel {
  int opset = 0;
  std::string name;
  std::string doc;
  std::map<std::string, std::int64_t> domains;  // of custom operations
  std::map<std::string, std::string> metadata;
  std::vector<FileValue> inputs;
  std::vector<FileValue> outputs;
  std::vector<FileValue> values;  // between them
  std::vector<Initializer> initializers;
  std::vector<Node> nodes;
};

/// ONNX's number for a dtype; nullopt when it has none.
[[nodiscard]] std::optional<int> onnx_dtype(DType dtype) noexcept;

/// ONNX's checker and strict shape inference; Errc::onnx_invalid. Large initializers count by their shape
/// alone.
void check(const FileModel& model, const std::string& path);
/// The bytes of the file. Errc::size_overflow beyond protobuf's limit.
[[nodiscard]] std::string serialize(const FileModel& model, const std::string& path);

}  // namespace ballast::onnx
