// SPDX-License-Identifier: Apache-2.0
// An operation from outside: public headers alone, and nothing of Ballast is touched. Snake, the activation
// x + sin(alpha x)^2 / alpha, as one node of the toy's own domain, and as nodes of ONNX's own.
#pragma once

#include <cmath>

#include "ballast/error.h"
#include "ballast/onnx.h"
#include "ballast/operation.h"

namespace toy {

using ballast::Attributes;
using ballast::Operation;
using ballast::OperationCall;
using ballast::Tensor;

inline int kernel_calls = 0;

inline Tensor snake_cpu(const Operation& operation, const Tensor& x, double alpha) {
  ++kernel_calls;
  if (x.dtype() != ballast::DType::f32)
    throw ballast::Error(ballast::Errc::bad_dtype, operation.name, "computes with F32");
  Tensor out = x.clone();
  const auto a = static_cast<float>(alpha);
  for (float& value : out.mutable_span<float>()) value += std::sin(a * value) * std::sin(a * value) / a;
  return out;
}

inline std::optional<std::vector<Tensor>> snake_form(const OperationCall& call) {
  return std::vector<Tensor>{{call.dtype(0), call.shape(0)}};
}

inline std::vector<std::string> snake_onnx(ballast::onnx::Builder& to, std::span<const std::string> inputs,
                                           const Attributes& attributes) {
  const auto a = static_cast<float>(std::get<double>(attributes[0].value));
  const std::string alpha = to.constant(Tensor::from({a}, {}));
  const std::string wave = to.node("Sin", {to.node("Mul", {inputs[0], alpha})});
  return {to.node("Add", {inputs[0], to.node("Div", {to.node("Mul", {wave, wave}), alpha})})};
}

using Snake = ballast::OperationOf<Tensor(const Tensor&, double)>;

constexpr Operation snake(ballast::OnnxRule to_onnx) {
  return {.name = "Snake",
          .inputs = {"x"},
          .attributes = {"alpha"},
          .form = snake_form,
          .domain = "com.example",
          .to_onnx = to_onnx};
}

inline const Snake kSnake = {snake(nullptr), {snake_cpu}};
inline const Snake kSnakeInPieces = {snake(snake_onnx), {snake_cpu}};

}  // namespace toy
