// SPDX-License-Identifier: Apache-2.0
// Normalisations; where an opset has no operator for one, what it is made of.
#include "ballast/detail/ops/create.h"
#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

// Parameter i, or a constant in its place.
std::string or_filled(const Call& call, std::size_t i, std::int64_t size, double value) {
  return call.has(i) ? call.floats(i) : call.to.constant(ballast::full({size}, value));
}

void batch_norm(const Call& call) {
  const std::int64_t channels = call.value(0).shape[1];
  call.result(call.to.node("BatchNormalization",
                           {call.floats(0), or_filled(call, 3, channels, 1), or_filled(call, 4, channels, 0),
                            call.floats(1), call.floats(2)},
                           {{"epsilon", call.real("eps")}}),
              DType::f32);
}

Dims last_axes(const Call& call) {
  const std::size_t count = call.sizes("normalized").size();
  const auto rank = static_cast<std::int64_t>(call.value(0).shape.size());
  Dims axes;
  for (std::size_t i = count; i > 0; --i) axes.push_back(rank - static_cast<std::int64_t>(i));
  return axes;
}

// x / sqrt(mean(x^2) + eps)
std::string normalized(const Call& call, const std::string& x) {
  Lowering& to = call.to;
  const std::string square = to.reduce("ReduceMean", to.node("Mul", {x, x}), last_axes(call), true);
  const std::string root = to.node("Sqrt", {to.node("Add", {square, to.real(call.real("eps"))})});
  return to.node("Div", {x, root});
}

std::string scaled(const Call& call, std::string x, std::size_t gamma, std::size_t beta) {
  if (call.has(gamma)) x = call.to.node("Mul", {x, call.floats(gamma)});
  return call.has(beta) ? call.to.node("Add", {x, call.floats(beta)}) : x;
}

void layer_norm(const Call& call) {
  Lowering& to = call.to;
  const std::string x = call.floats(0);
  const Dims axes = last_axes(call);
  if (to.opset() >= 17 && (call.has(1) || !call.is_symbolic("normalized"))) {
    std::string gamma = call.floats(1);
    if (!call.has(1)) gamma = to.constant(ballast::full(call.list("normalized"), 1));
    return call.result(to.node("LayerNormalization", {x, gamma, call.floats(2)},
                               {{"axis", axes[0]}, {"epsilon", call.real("eps")}}),
                       DType::f32);
  }
  const std::string centred = to.node("Sub", {x, to.reduce("ReduceMean", x, axes, true)});
  call.result(scaled(call, normalized(call, centred), 1, 2), DType::f32);
}

void rms_norm(const Call& call) {
  call.result(scaled(call, normalized(call, call.floats(0)), 1, 9), DType::f32);
}

// A parameter of channels as [channels, 1, …], to be broadcast over what follows them.
std::string per_channel(const Call& call, std::size_t i) {
  const std::size_t rank = call.value(0).shape.size();
  Dims shape = Dims::filled(rank - 1, 1);
  shape[0] = call.value(0).shape[1];
  return rank == 2 ? call.floats(i) : call.to.reshape(call.floats(i), shape);
}

// Groups as the channels of an instance norm.
void group_norm(const Call& call) {
  Lowering& to = call.to;
  const std::int64_t groups = call.number("groups");
  const std::string together = to.reshape(call.floats(0), {0, groups, -1});
  const std::string same =
      to.node("InstanceNormalization",
              {together, to.constant(ballast::full({groups}, 1)), to.constant(ballast::full({groups}, 0))},
              {{"epsilon", call.real("eps")}});
  std::string y = to.node("Reshape", {same, to.shape_of(call.node.inputs[0])});
  if (call.has(1)) y = to.node("Mul", {y, per_channel(call, 1)});
  if (call.has(2)) y = to.node("Add", {y, per_channel(call, 2)});
  call.result(y, DType::f32);
}

void instance_norm(const Call& call) {
  const std::int64_t channels = call.value(0).shape[1];
  call.result(call.to.node("InstanceNormalization",
                           {call.floats(0), or_filled(call, 1, channels, 1), or_filled(call, 2, channels, 0)},
                           {{"epsilon", call.real("eps")}}),
              DType::f32);
}

}  // namespace

void add_norms(TranslateTable& table) {
  table.insert({{&operations::batch_norm, batch_norm},
                {&operations::layer_norm, layer_norm},
                {&operations::rms_norm, rms_norm},
                {&operations::group_norm, group_norm},
                {&operations::instance_norm, instance_norm}});
}

}  // namespace ballast::onnx
