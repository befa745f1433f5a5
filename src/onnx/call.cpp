// SPDX-License-Identifier: Apache-2.0
#include "base/fail.h"
#include "onnx/lowering.h"

namespace ballast::onnx {

const GraphValue& Call::value(std::size_t i) const {
  return to.value(node.inputs[i]);
}

const GraphValue& Call::result_value(std::size_t i) const {
  return to.value(node.outputs[i]);
}

std::string Call::in(std::size_t i) const {
  return has(i) ? to.name_of(node.inputs[i]) : std::string();
}

std::string Call::in(std::size_t i, DType dtype) const {
  if (!has(i)) return {};
  const std::int64_t id = node.inputs[i];
  const GraphValue& from = to.value(id);
  if (from.dtype == dtype) return to.name_of(id);
  if (dtype == DType::f32 && !to.wide(id).empty()) return to.wide(id);
  // A number takes the dtype of the computation it stands in.
  if (from.kind == GraphValue::Kind::constant && from.number.is_constant())
    return to.constant(from.tensor.to(dtype));
  return to.cast(to.name_of(id), from.kind == GraphValue::Kind::constant ? DType::i64 : from.dtype, dtype);
}

void Call::result(const std::string& name, std::optional<DType> computed, std::size_t i) const {
  const GraphValue& wanted = result_value(i);
  to.set(node.outputs[i], to.cast(name, computed.value_or(wanted.dtype), wanted.dtype));
  if (computed == DType::f32 && (wanted.dtype == DType::f16 || wanted.dtype == DType::bf16))
    to.set_wide(node.outputs[i], name);
}

DType Call::held(std::size_t i) const {
  return to.wide(node.inputs[i]).empty() ? value(i).dtype : DType::f32;
}

const Attribute& Call::attribute(std::string_view name) const {
  for (const Attribute& one : node.attributes)
    if (one.name == name) return one;
  fail(Errc::unsupported, node.operation->name, "has no attribute {}", name);
}

bool Call::is_symbolic(std::string_view name) const {
  for (const SymbolicAttribute& one : node.symbolic)
    if (one.attribute == name) return true;
  return false;
}

std::int64_t Call::number(std::string_view name) const {
  if (is_symbolic(name)) refuse(fmt::format("{} follows from the inputs' sizes", name));
  return std::get<std::int64_t>(attribute(name).value);
}

double Call::real(std::string_view name) const {
  return std::get<double>(attribute(name).value);
}

Dims Call::list(std::string_view name) const {
  if (is_symbolic(name)) refuse(fmt::format("{} follows from the inputs' sizes", name));
  return std::get<Dims>(attribute(name).value);
}

const std::vector<double>& Call::reals(std::string_view name) const {
  return std::get<std::vector<double>>(attribute(name).value);
}

SizeExpr Call::size(std::string_view name, std::size_t index) const {
  for (const SymbolicAttribute& one : node.symbolic)
    if (one.attribute == name && one.index == index) return one.size;
  SizeExpr size;
  const Attribute& one = attribute(name);
  const auto* dims = std::get_if<Dims>(&one.value);
  size.constant = dims != nullptr ? (*dims)[index] : std::get<std::int64_t>(one.value);
  return size;
}

std::vector<SizeExpr> Call::sizes(std::string_view name) const {
  std::vector<SizeExpr> all;
  const std::size_t count = std::get<Dims>(attribute(name).value).size();
  for (std::size_t i = 0; i < count; ++i) all.push_back(size(name, i));
  return all;
}

std::int64_t Call::axis(std::string_view name, std::size_t i) const {
  const std::int64_t given = number(name);
  const auto rank = static_cast<std::int64_t>(value(i).shape.size());
  return given < 0 ? given + rank : given;
}

}  // namespace ballast::onnx
