// SPDX-License-Identifier: Apache-2.0
#include "graph/forms.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "ops/args.h"

namespace ballast::graph {
namespace {

const Attribute::Value& value_of(const Asked& asked, std::string_view name) {
  for (const Attribute& one : asked.attributes)
    if (one.name == name) return one.value;
  fail(Errc::unsupported, asked.op, "has no attribute {}", name);
}

// A number and a tensor without dimensions look alike here, and PyTorch does not treat them alike.
bool dtype_is_told(const Asked& asked, std::size_t a, std::size_t b) {
  const auto hides = [&](std::size_t scalar, std::size_t other) {
    return asked.shape(scalar).empty() && asked.dtype(scalar) == DType::f64 &&
           !is_floating(asked.dtype(other));
  };
  const bool both = asked.shape(a).empty() && asked.shape(b).empty();
  return !both && !hides(a, b) && !hides(b, a);
}

std::optional<Forms> arithmetic(const Asked& asked) {
  if (!dtype_is_told(asked, 0, 1)) return std::nullopt;
  DType dtype = ops::promoted(asked.op, asked.inputs[0], asked.inputs[1]);
  if (std::string_view(asked.op) == "div" && !is_floating(dtype)) dtype = DType::f32;
  if (dtype == DType::boolean) return std::nullopt;  // some refuse it
  if (std::string_view(asked.op) == "prelu" && !is_floating(dtype)) return std::nullopt;
  return Forms{{dtype, ops::broadcast(asked.op, asked.shape(0), asked.shape(1))}};
}

std::optional<Forms> comparison(const Asked& asked) {
  return Forms{{DType::boolean, ops::broadcast(asked.op, asked.shape(0), asked.shape(1))}};
}

std::optional<Forms> where(const Asked& asked) {
  if (asked.dtype(0) != DType::boolean || !dtype_is_told(asked, 1, 2)) return std::nullopt;
  const DType dtype = ops::promoted(asked.op, asked.inputs[1], asked.inputs[2]);
  const Shape both = ops::broadcast(asked.op, asked.shape(1), asked.shape(2));
  return Forms{{dtype, ops::broadcast(asked.op, asked.shape(0), both)}};
}

// Integers become something else in some, and are refused by others.
std::optional<Forms> function(const Asked& asked) {
  const DType dtype = asked.dtype(0);
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 && dtype != DType::f64)
    return std::nullopt;
  return Forms{{dtype, asked.shape(0)}};
}

std::optional<Forms> softmax(const Asked& asked) {
  if (asked.dtype(0) == DType::f64) return std::nullopt;  // refused
  return function(asked);
}

std::optional<Forms> clone(const Asked& asked) {
  return Forms{{asked.dtype(0), asked.shape(0)}};
}

std::optional<Forms> cast(const Asked& asked) {
  const auto dtype = dtype_from_code(asked.text("dtype"));
  if (!dtype) return std::nullopt;
  return Forms{{*dtype, asked.shape(0)}};
}

std::optional<Forms> reshape(const Asked& asked) {
  return Forms{Tensor(asked.dtype(0), asked.shape(0)).reshape(asked.list("shape"))};
}

std::optional<Forms> triangle(const Asked& asked) {
  if (asked.shape(0).size() < 2)
    fail(Errc::shape_mismatch, asked.op, "{} has no two last dimensions", ops::form(asked.inputs[0]));
  return clone(asked);
}

std::optional<Forms> concat(const Asked& asked) {
  if (asked.shape(0).empty()) return std::nullopt;  // refused
  const std::size_t axis = ops::axis_of(asked.op, asked.number("dim"), asked.inputs[0]);
  Shape shape = asked.shape(0);
  shape[axis] = 0;
  for (const Tensor& tensor : asked.inputs) {
    Shape rest = tensor.shape();
    if (rest.size() != shape.size() || tensor.dtype() != asked.dtype(0)) return std::nullopt;
    const std::int64_t size = std::exchange(rest[axis], shape[axis]);
    if (!(rest == shape))
      fail(Errc::shape_mismatch, asked.op, "{} and {} differ outside dimension {}",
           ops::form(asked.inputs[0]), ops::form(tensor), axis);
    shape[axis] += size;
  }
  return Forms{{asked.dtype(0), shape}};
}

std::optional<Forms> pad(const Asked& asked) {
  const Dims& amounts = asked.list("amounts");
  const std::int64_t mode = asked.number("mode");  // PadMode: constant, reflect, replicate, circular
  Shape shape = asked.shape(0);
  if (amounts.size() % 2 != 0 || amounts.size() / 2 > shape.size()) return std::nullopt;
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    std::int64_t& size = shape[shape.size() - 1 - i];
    const std::int64_t before = amounts[2 * i];
    const std::int64_t after = amounts[2 * i + 1];
    if (before == 0 && after == 0) continue;
    if (std::abs(before) > ops::kMostSpatial || std::abs(after) > ops::kMostSpatial) return std::nullopt;
    const std::int64_t kept = size + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0);
    const bool chosen = mode == 2 || std::max(before, after) <= (mode == 1 ? size - 1 : size);
    if (mode == 0 ? kept < 0 : (before < 0 || after < 0 || size == 0 || !chosen))
      fail(Errc::shape_mismatch, asked.op, "{} cannot be padded by {} in this mode",
           ops::form(asked.inputs[0]), to_string(amounts));
    size += before + after;
  }
  return Forms{{asked.dtype(0), shape}};
}

FormTable all_forms() {
  FormTable table = {{"where", where},     {"clone", clone},        {"cast", cast},     {"reshape", reshape},
                     {"tril", triangle},   {"triu", triangle},      {"concat", concat}, {"pad", pad},
                     {"softmax", softmax}, {"log_softmax", softmax}};
  for (const char* op : {"add", "sub", "mul", "div", "pow", "minimum", "maximum", "prelu"})
    table.emplace(op, arithmetic);
  for (const char* op : {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
                         "logical_not", "isnan", "isinf"})
    table.emplace(op, comparison);
  for (const char* op :
       {"neg",      "abs",        "sign",      "square",      "exp",         "expm1",    "log",       "log1p",
        "sqrt",     "rsqrt",      "sin",       "cos",         "tan",         "erf",      "floor",     "ceil",
        "round",    "trunc",      "clamp",     "relu",        "relu6",       "gelu",     "gelu_tanh", "silu",
        "sigmoid",  "tanh",       "mish",      "softplus",    "log_sigmoid", "softsign", "elu",       "selu",
        "hardtanh", "leaky_relu", "hardswish", "hardsigmoid", "reciprocal"})
    table.emplace(op, function);
  add_layer_forms(table);
  add_reduction_forms(table);
  return table;
}

}  // namespace

std::int64_t Asked::number(std::string_view name) const {
  return std::get<std::int64_t>(value_of(*this, name));
}

const Dims& Asked::list(std::string_view name) const {
  return std::get<Dims>(value_of(*this, name));
}

const std::vector<double>& Asked::reals(std::string_view name) const {
  return std::get<std::vector<double>>(value_of(*this, name));
}

const std::string& Asked::text(std::string_view name) const {
  return std::get<std::string>(value_of(*this, name));
}

std::optional<Forms> forms_of(const Asked& asked) {
  static const FormTable table = all_forms();
  const auto found = table.find(asked.op);
  return found == table.end() ? std::nullopt : found->second(asked);
}

}  // namespace ballast::graph
