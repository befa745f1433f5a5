// SPDX-License-Identifier: Apache-2.0
// The one file that sees the protocol buffer: made, checked, and turned into bytes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>
#pragma GCC diagnostic pop

#include <span>

#include "ballast/onnx.h"
#include "base/fail.h"
#include "base/version.h"
#include "onnx/file.h"

namespace ballast::onnx {
namespace {

constexpr std::uint64_t kMostBytes = 0x7FFFFFFF;  // a protocol buffer's
constexpr std::uint64_t kSmall = 4096;  // bytes of an initializer whose values shape inference may need

// By opset: the IR version of the ONNX release that brought it.
int ir_version_of(int opset) {
  if (opset <= 11) return 6;
  return opset <= 14 ? 7 : 8;
}

void put_attribute(::onnx::NodeProto& node, const Attribute& attribute) {
  using Proto = ::onnx::AttributeProto;
  Proto& to = *node.add_attribute();
  to.set_name(attribute.name);
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    to.set_type(Proto::INT);
    to.set_i(*number);
  } else if (const auto* real = std::get_if<double>(&attribute.value)) {
    to.set_type(Proto::FLOAT);
    to.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    to.set_type(Proto::STRING);
    to.set_s(*text);
  } else if (const auto* dims = std::get_if<Dims>(&attribute.value)) {
    to.set_type(Proto::INTS);
    for (const std::int64_t one : *dims) to.add_ints(one);
  } else if (const auto* reals = std::get_if<std::vector<double>>(&attribute.value)) {
    to.set_type(Proto::FLOATS);
    for (const double one : *reals) to.add_floats(static_cast<float>(one));
  } else {
    to.set_type(Proto::STRINGS);
    for (const std::string& one : std::get<std::vector<std::string>>(attribute.value)) to.add_strings(one);
  }
}

void put_value(::onnx::ValueInfoProto& to, const FileValue& value) {
  to.set_name(value.name);
  auto& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_dtype(value.dtype).value_or(0));
  auto& shape = *type.mutable_shape();
  for (const FileDim& dim : value.shape) {
    auto& one = *shape.add_dim();
    if (!dim.name.empty())
      one.set_dim_param(dim.name);
    else if (dim.size >= 0)
      one.set_dim_value(dim.size);
  }
}

void put_entry(::onnx::StringStringEntryProto& to, const std::string& key, const std::string& value) {
  to.set_key(key);
  to.set_value(value);
}

void put_initializer(::onnx::TensorProto& to, const Initializer& initializer) {
  const Tensor& tensor = initializer.tensor;
  to.set_name(initializer.name);
  to.set_data_type(onnx_dtype(tensor.dtype()).value_or(0));
  for (const std::int64_t dim : tensor.shape()) to.add_dims(dim);
  if (initializer.external) {
    to.set_data_location(::onnx::TensorProto::EXTERNAL);
    put_entry(*to.add_external_data(), "location", initializer.external->location);
    put_entry(*to.add_external_data(), "offset", std::to_string(initializer.external->offset));
    put_entry(*to.add_external_data(), "length", std::to_string(tensor.size_bytes()));
    if (!initializer.external->sha1.empty())
      put_entry(*to.add_external_data(), "checksum", initializer.external->sha1);
    return;
  }
  std::string& bytes = *to.mutable_raw_data();
  bytes.resize(static_cast<std::size_t>(tensor.size_bytes()));
  tensor.read(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
}

FileValue declared(const Initializer& initializer) {
  FileValue value{initializer.name, initializer.tensor.dtype(), {}};
  for (const std::int64_t dim : initializer.tensor.shape()) value.shape.push_back({dim, {}});
  return value;
}

// With `light`, large initializers are inputs instead: for those who look at shapes.
void put_model(::onnx::ModelProto& to, const FileModel& model, bool light) {
  to.set_ir_version(ir_version_of(model.opset));
  to.set_producer_name("ballast");
  to.set_producer_version(kVersionText);
  if (!model.doc.empty()) to.set_doc_string(model.doc);
  auto& main = *to.add_opset_import();
  main.set_domain("");
  main.set_version(model.opset);
  for (const auto& [domain, version] : model.domains) {
    auto& one = *to.add_opset_import();
    one.set_domain(domain);
    one.set_version(version);
  }
  for (const auto& [key, value] : model.metadata) put_entry(*to.add_metadata_props(), key, value);
  ::onnx::GraphProto& graph = *to.mutable_graph();
  graph.set_name(model.name);
  if (!model.doc.empty()) graph.set_doc_string(model.doc);
  for (const FileValue& value : model.inputs) put_value(*graph.add_input(), value);
  for (const FileValue& value : model.outputs) put_value(*graph.add_output(), value);
  for (const FileValue& value : model.values) put_value(*graph.add_value_info(), value);
  for (const Initializer& one : model.initializers) {
    if (light && (one.external || one.tensor.size_bytes() > kSmall))
      put_value(*graph.add_input(), declared(one));
    else
      put_initializer(*graph.add_initializer(), one);
  }
  for (const Node& node : model.nodes) {
    ::onnx::NodeProto& one = *graph.add_node();
    one.set_op_type(node.op);
    if (!node.domain.empty()) one.set_domain(node.domain);
    one.set_name(node.name);
    for (const std::string& input : node.inputs) one.add_input(input);
    for (const std::string& output : node.outputs) one.add_output(output);
    for (const Attribute& attribute : node.attributes) put_attribute(one, attribute);
  }
}

}  // namespace

int newest_opset() {
  const auto& ranges = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  return ranges.at("").second;
}

std::optional<int> onnx_dtype(DType dtype) noexcept {
  using Proto = ::onnx::TensorProto;
  switch (dtype) {
    case DType::boolean:
      return Proto::BOOL;
    case DType::u8:
      return Proto::UINT8;
    case DType::i8:
      return Proto::INT8;
    case DType::u16:
      return Proto::UINT16;
    case DType::i16:
      return Proto::INT16;
    case DType::u32:
      return Proto::UINT32;
    case DType::i32:
      return Proto::INT32;
    case DType::u64:
      return Proto::UINT64;
    case DType::i64:
      return Proto::INT64;
    case DType::f16:
      return Proto::FLOAT16;
    case DType::bf16:
      return Proto::BFLOAT16;
    case DType::f32:
      return Proto::FLOAT;
    case DType::f64:
      return Proto::DOUBLE;
    default:
      return std::nullopt;
  }
}

void check(const FileModel& model, const std::string& path) {
  ::onnx::ModelProto proto;
  put_model(proto, model, true);
  try {
    ::onnx::checker::check_model(proto);
    ::onnx::ShapeInferenceOptions options;
    options.check_type = true;
    options.error_mode = 1;  // strict
    options.enable_data_propagation = true;
    ::onnx::shape_inference::InferShapes(proto, ::onnx::OpSchemaRegistry::Instance(), options);
  } catch (const std::exception& error) {
    fail(Errc::onnx_invalid, path, "ONNX's checker refuses what was made: {}", error.what());
  }
}

std::string serialize(const FileModel& model, const std::string& path) {
  ::onnx::ModelProto proto;
  put_model(proto, model, false);
  if (proto.ByteSizeLong() > kMostBytes)
    fail(Errc::size_overflow, path, "{} bytes are more than a protocol buffer holds; use external data",
         proto.ByteSizeLong());
  return proto.SerializeAsString();
}

}  // namespace ballast::onnx
