// SPDX-License-Identifier: Apache-2.0
#include "ops/forms.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "ops/args.h"

namespace ballast::ops::forms {
namespace {

// A number and a tensor without dimensions look alike here, and PyTorch does not treat them alike.
bool dtype_is_told(const OperationCall& call, std::size_t a, std::size_t b) {
  const auto hides = [&](std::size_t scalar, std::size_t other) {
    return call.shape(scalar).empty() && call.dtype(scalar) == DType::f64 && !is_floating(call.dtype(other));
  };
  const bool both = call.shape(a).empty() && call.shape(b).empty();
  return !both && !hides(a, b) && !hides(b, a);
}

std::optional<Forms> arithmetic_in(const OperationCall& call, DType dtype) {
  if (dtype == DType::boolean) return std::nullopt;  // some refuse it
  return Forms{{dtype, broadcast(call.name(), call.shape(0), call.shape(1))}};
}

}  // namespace

std::optional<Forms> arithmetic(const OperationCall& call) {
  if (!dtype_is_told(call, 0, 1)) return std::nullopt;
  return arithmetic_in(call, promoted(call.name(), call.inputs[0], call.inputs[1]));
}

std::optional<Forms> quotient(const OperationCall& call) {
  if (!dtype_is_told(call, 0, 1)) return std::nullopt;
  const DType dtype = promoted(call.name(), call.inputs[0], call.inputs[1]);
  return arithmetic_in(call, is_floating(dtype) ? dtype : DType::f32);
}

std::optional<Forms> prelu(const OperationCall& call) {
  auto forms = arithmetic(call);
  return forms && is_floating(forms->front().dtype()) ? forms : std::nullopt;
}

std::optional<Forms> comparison(const OperationCall& call) {
  return Forms{{DType::boolean, broadcast(call.name(), call.shape(0), call.shape(1))}};
}

std::optional<Forms> where(const OperationCall& call) {
  if (call.dtype(0) != DType::boolean || !dtype_is_told(call, 1, 2)) return std::nullopt;
  const DType dtype = promoted(call.name(), call.inputs[1], call.inputs[2]);
  const Shape both = broadcast(call.name(), call.shape(1), call.shape(2));
  return Forms{{dtype, broadcast(call.name(), call.shape(0), both)}};
}

// Integers become something else in some, and are refused by others.
std::optional<Forms> function(const OperationCall& call) {
  const DType dtype = call.dtype(0);
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 && dtype != DType::f64)
    return std::nullopt;
  return Forms{{dtype, call.shape(0)}};
}

std::optional<Forms> softmax(const OperationCall& call) {
  static_cast<void>(axis_of(call.name(), call.number("dim"), call.inputs[0]));
  return function(call);
}

std::optional<Forms> triangle(const OperationCall& call) {
  if (call.shape(0).size() < 2)
    fail(Errc::shape_mismatch, call.name(), "{} has no two last dimensions", form(call.inputs[0]));
  return Forms{{call.dtype(0), call.shape(0)}};
}

std::optional<Forms> concat(const OperationCall& call) {
  if (call.shape(0).empty()) return std::nullopt;  // refused
  const std::size_t axis = axis_of(call.name(), call.number("dim"), call.inputs[0]);
  Shape shape = call.shape(0);
  shape[axis] = 0;
  for (const Tensor& tensor : call.inputs) {
    Shape rest = tensor.shape();
    if (rest.size() != shape.size() || tensor.dtype() != call.dtype(0)) return std::nullopt;
    const std::int64_t size = std::exchange(rest[axis], shape[axis]);
    if (!(rest == shape))
      fail(Errc::shape_mismatch, call.name(), "{} and {} differ outside dimension {}", form(call.inputs[0]),
           form(tensor), axis);
    shape[axis] += size;
  }
  return Forms{{call.dtype(0), shape}};
}

std::optional<Forms> pad(const OperationCall& call) {
  const Dims& amounts = call.list("amounts");
  const std::int64_t mode = call.number("mode");  // PadMode: constant, reflect, replicate, circular
  Shape shape = call.shape(0);
  if (amounts.size() % 2 != 0 || amounts.size() / 2 > shape.size()) return std::nullopt;
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    std::int64_t& size = shape[shape.size() - 1 - i];
    const std::int64_t before = amounts[2 * i];
    const std::int64_t after = amounts[2 * i + 1];
    if (before == 0 && after == 0) continue;
    if (std::abs(before) > kMostSpatial || std::abs(after) > kMostSpatial) return std::nullopt;
    const std::int64_t kept = size + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0);
    const bool chosen = mode == 2 || std::max(before, after) <= (mode == 1 ? size - 1 : size);
    if (mode == 0 ? kept < 0 : (before < 0 || after < 0 || size == 0 || !chosen))
      fail(Errc::shape_mismatch, call.name(), "{} cannot be padded by {} in this mode", form(call.inputs[0]),
           to_string(amounts));
    size += before + after;
  }
  return Forms{{call.dtype(0), shape}};
}

}  // namespace ballast::ops::forms
