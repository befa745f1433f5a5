// SPDX-License-Identifier: Apache-2.0
// The types of inputs and outputs, as text and dimensions.
#include "base/fail.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/model.h"

namespace ballast::onnx_file {
namespace {

class TypeReader {
 public:
  explicit TypeReader(WireReader& wire) : wire_(wire) {}

  // The shape is that of the outermost tensor: inside sequences it is nobody's.
  std::string read(Range rest, ValueInfo* value, int depth) {
    if (depth > kMaxTypeDepth)
      fail(Errc::too_deep, wire_.where(), "types inside types, more than {} deep", kMaxTypeDepth);
    std::string text;
    Field field;
    while (wire_.next(rest, field)) {
      const std::string one = read_kind(field, value, depth);
      if (!one.empty()) text = one;
    }
    return text;
  }

 private:
  std::string read_kind(const Field& field, ValueInfo* value, int depth) {
    switch (field.number) {
      case type_proto::tensor:
        return read_tensor(wire_.message(field, "tensor_type"), value);
      case type_proto::sparse_tensor:
        return "sparse(" + read_tensor(wire_.message(field, "sparse_tensor_type"), value) + ")";
      case type_proto::sequence:
        return "sequence(" + read_element(wire_.message(field, "sequence_type"), depth) + ")";
      case type_proto::optional:
        return "optional(" + read_element(wire_.message(field, "optional_type"), depth) + ")";
      case type_proto::map:
        return read_map(wire_.message(field, "map_type"), depth);
      case type_proto::opaque:
        return "opaque";
      default:
        return {};
    }
  }

  std::string read_tensor(Range rest, ValueInfo* value) {
    std::string text;
    Field field;
    while (wire_.next(rest, field)) {
      if (field.number == type_proto::element) text = type_text(wire_.number(field, "elem_type"));
      if (field.number == type_proto::shape && value != nullptr)
        value->shape = read_shape(wire_.message(field, "shape"));
    }
    return text;
  }

  std::string read_element(Range rest, int depth) {
    std::string text;
    Field field;
    while (wire_.next(rest, field)) {
      if (field.number == type_proto::element)
        text = read(wire_.message(field, "elem_type"), nullptr, depth + 1);
    }
    return text;
  }

  std::string read_map(Range rest, int depth) {
    std::string key;
    std::string value;
    Field field;
    while (wire_.next(rest, field)) {
      if (field.number == type_proto::map_key) key = type_text(wire_.number(field, "key_type"));
      if (field.number == type_proto::map_value)
        value = read(wire_.message(field, "value_type"), nullptr, depth + 1);
    }
    return "map(" + key + ", " + value + ")";
  }

  std::vector<Dimension> read_shape(Range rest) {
    std::vector<Dimension> shape;
    Field field;
    while (wire_.next(rest, field)) {
      if (field.number != type_proto::dim) continue;
      if (shape.size() == kMaxRank)
        fail(Errc::too_many, wire_.where(), "an input or output of more than {} dimensions", kMaxRank);
      shape.push_back(read_dim(wire_.message(field, "dim")));
    }
    return shape;
  }

  Dimension read_dim(Range rest) {
    Dimension dim;
    Field field;
    while (wire_.next(rest, field)) {
      if (field.number == type_proto::dim_value) {
        const auto size = static_cast<std::int64_t>(wire_.number(field, "dim_value"));
        if (size >= 0) dim.size = size;  // some exporters write -1 for what is not known
      }
      if (field.number == type_proto::dim_param) dim.symbol = wire_.text(field, "dim_param", kMaxNameBytes);
    }
    return dim;
  }

  WireReader& wire_;
};

}  // namespace

ValueInfo read_value_info(WireReader& wire, Range rest) {
  ValueInfo value;
  Field field;
  while (wire.next(rest, field)) {
    if (field.number == value_proto::name) value.name = wire.text(field, "a name", kMaxNameBytes);
    if (field.number == value_proto::type)
      value.type = TypeReader(wire).read(wire.message(field, "type"), &value, 0);
  }
  return value;
}

}  // namespace ballast::onnx_file
