// SPDX-License-Identifier: Apache-2.0
// Activations, which compute in F32 (F64 for F64), and softmax.
#include <cmath>
#include <numbers>

#include "onnx/lowering.h"
#include "ops/activation.h"

namespace ballast::onnx {
namespace {

// x in the dtype of the computation, and what is put around it.
struct Work {
  explicit Work(const Call& the_call)
      : call(the_call),
        to(the_call.to),
        dtype(the_call.result_value().dtype == DType::f64 ? DType::f64 : DType::f32),
        x(the_call.in(0, dtype)) {}

  const Call& call;
  Lowering& to;
  DType dtype;
  std::string x;

  [[nodiscard]] std::string number(double value) const { return to.real(value, dtype); }

  [[nodiscard]] std::string mul(const std::string& a, const std::string& b) const {
    return to.node("Mul", {a, b});
  }

  [[nodiscard]] std::string add(const std::string& a, const std::string& b) const {
    return to.node("Add", {a, b});
  }

  void done(const std::string& name) const { call.result(name, dtype); }
};

void gelu(const Call& call) {
  const Work w(call);
  const std::string erf = w.to.node("Erf", {w.mul(w.x, w.number(1 / std::numbers::sqrt2))});
  w.done(w.mul(w.mul(w.x, w.add(erf, w.number(1))), w.number(0.5)));
}

void gelu_tanh(const Call& call) {
  const Work w(call);
  const std::string cube = w.mul(w.mul(w.x, w.x), w.x);
  const std::string inner =
      w.mul(w.add(w.x, w.mul(cube, w.number(0.044715))), w.number(std::sqrt(2 / std::numbers::pi)));
  w.done(w.mul(w.mul(w.x, w.add(w.to.node("Tanh", {inner}), w.number(1))), w.number(0.5)));
}

void silu(const Call& call) {
  const Work w(call);
  w.done(w.mul(w.x, w.to.node("Sigmoid", {w.x})));
}

void sigmoid(const Call& call) {
  const Work w(call);
  w.done(w.to.node("Sigmoid", {w.x}));
}

void log_sigmoid(const Call& call) {
  const Work w(call);
  w.done(w.to.node("Neg", {w.to.node("Softplus", {w.to.node("Neg", {w.x})})}));
}

void tanh(const Call& call) {
  const Work w(call);
  w.done(w.to.node("Tanh", {w.x}));
}

void softplus(const Call& call) {
  const Work w(call);
  const double beta = call.real("beta");
  const double threshold = call.real("threshold");
  const std::string scaled = beta == 1 ? w.x : w.mul(w.x, w.number(beta));
  std::string y = w.to.node("Softplus", {scaled});
  if (beta != 1) y = w.to.node("Div", {y, w.number(beta)});
  // Beyond 20 the two agree in every digit.
  if (threshold < 20) y = w.to.node("Where", {w.to.node("Greater", {scaled, w.number(threshold)}), w.x, y});
  w.done(y);
}

void softsign(const Call& call) {
  const Work w(call);
  w.done(w.to.node("Softsign", {w.x}));
}

void elu(const Call& call) {
  const Work w(call);
  w.done(w.to.node("Elu", {w.x}, {{"alpha", call.real("alpha")}}));
}

void selu(const Call& call) {
  const Work w(call);
  w.done(w.to.node("Selu", {w.x}, {{"alpha", ops::kSeluAlpha}, {"gamma", ops::kSeluScale}}));
}

void leaky_relu(const Call& call) {
  const Work w(call);
  w.done(w.to.node("LeakyRelu", {w.x}, {{"alpha", call.real("negative_slope")}}));
}

void hardswish(const Call& call) {
  const Work w(call);
  if (call.to.opset() >= 14 && w.dtype == DType::f32) return w.done(w.to.node("HardSwish", {w.x}));
  const std::string gate = w.to.node("Clip", {w.add(w.x, w.number(3)), w.number(0), w.number(6)});
  w.done(w.to.node("Div", {w.mul(w.x, gate), w.number(6)}));
}

void hardsigmoid(const Call& call) {
  const Work w(call);
  w.done(w.to.node("HardSigmoid", {w.x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

void mish(const Call& call) {
  const Work w(call);
  w.done(w.mul(w.x, w.to.node("Tanh", {w.to.node("Softplus", {w.x})})));
}

// Before opset 13 the axis cut x into a matrix; along the last one that is the same.
void softmax_by(const Call& call, const char* op) {
  const DType dtype = call.value(0).dtype == DType::f64 ? DType::f64 : DType::f32;
  const std::string x = call.in(0, dtype);
  const auto rank = static_cast<std::int64_t>(call.value(0).shape.size());
  if (rank == 0) {
    const std::string one = call.to.node(op, {call.to.reshape(x, {1})}, {{"axis", std::int64_t{0}}});
    return call.result(call.to.squeeze(one, {0}), dtype);
  }
  const std::int64_t axis = call.axis("dim");
  if (call.to.opset() >= 13 || axis == rank - 1)
    return call.result(call.to.node(op, {x}, {{"axis", axis}}), dtype);
  Dims order;
  for (std::int64_t i = 0; i < rank; ++i) order.push_back(i == axis ? rank - 1 : (i == rank - 1 ? axis : i));
  const std::string turned = call.to.node("Transpose", {x}, {{"perm", order}});
  const std::string y = call.to.node(op, {turned}, {{"axis", rank - 1}});
  call.result(call.to.node("Transpose", {y}, {{"perm", order}}), dtype);
}

void softmax(const Call& call) {
  softmax_by(call, "Softmax");
}

void log_softmax(const Call& call) {
  softmax_by(call, "LogSoftmax");
}

}  // namespace

void add_activations(TranslateTable& table) {
  table.insert({{&operations::gelu, gelu},
                {&operations::gelu_tanh, gelu_tanh},
                {&operations::silu, silu},
                {&operations::sigmoid, sigmoid},
                {&operations::log_sigmoid, log_sigmoid},
                {&operations::tanh, tanh},
                {&operations::softplus, softplus},
                {&operations::softsign, softsign},
                {&operations::elu, elu},
                {&operations::selu, selu},
                {&operations::leaky_relu, leaky_relu},
                {&operations::hardswish, hardswish},
                {&operations::hardsigmoid, hardsigmoid},
                {&operations::mish, mish},
                {&operations::softmax, softmax},
                {&operations::log_softmax, log_softmax}});
}

}  // namespace ballast::onnx
