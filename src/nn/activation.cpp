// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/activation.h"

#include "ballast/detail/ops/create.h"
#include "nn/parameters.h"

namespace ballast::nn {

PReLU::PReLU(std::int64_t parameters, double first)
    : num_parameters(parameters), init(first), alpha(parameter({parameters})) {}

std::vector<PReLU> PReLU::without_sizes() {
  std::vector<PReLU> layers(1);
  layers[0].alpha = {};
  return layers;
}

bool PReLU::take_sizes(std::span<const Shape> shapes) {
  if (shapes[0].size() != 1) return false;
  *this = PReLU(shapes[0][0], init);
  return true;
}

void PReLU::adjust_initial(std::string_view /*field*/, Tensor& value) const {
  value = full(value.shape(), init, value.dtype());
}

Tensor PReLU::forward(const Tensor& x) const {
  return place.run("PReLU", [&] { return prelu(x, alpha); });
}

Tensor ReLU::forward(const Tensor& x) const {
  return place.run("ReLU", [&] { return ballast::relu(x); });
}

Tensor ReLU6::forward(const Tensor& x) const {
  return place.run("ReLU6", [&] { return ballast::relu6(x); });
}

Tensor SELU::forward(const Tensor& x) const {
  return place.run("SELU", [&] { return ballast::selu(x); });
}

Tensor SiLU::forward(const Tensor& x) const {
  return place.run("SiLU", [&] { return ballast::silu(x); });
}

Tensor Mish::forward(const Tensor& x) const {
  return place.run("Mish", [&] { return ballast::mish(x); });
}

Tensor Sigmoid::forward(const Tensor& x) const {
  return place.run("Sigmoid", [&] { return ballast::sigmoid(x); });
}

Tensor LogSigmoid::forward(const Tensor& x) const {
  return place.run("LogSigmoid", [&] { return ballast::log_sigmoid(x); });
}

Tensor Tanh::forward(const Tensor& x) const {
  return place.run("Tanh", [&] { return ballast::tanh(x); });
}

Tensor Softsign::forward(const Tensor& x) const {
  return place.run("Softsign", [&] { return ballast::softsign(x); });
}

Tensor Hardswish::forward(const Tensor& x) const {
  return place.run("Hardswish", [&] { return ballast::hardswish(x); });
}

Tensor Hardsigmoid::forward(const Tensor& x) const {
  return place.run("Hardsigmoid", [&] { return ballast::hardsigmoid(x); });
}

Tensor GELU::forward(const Tensor& x) const {
  return place.run("GELU", [&] { return approximate == GELUApproximation::tanh ? gelu_tanh(x) : gelu(x); });
}

Tensor LeakyReLU::forward(const Tensor& x) const {
  return place.run("LeakyReLU", [&] { return leaky_relu(x, negative_slope); });
}

Tensor RReLU::forward(const Tensor& x) const {
  return place.run("RReLU", [&] { return rrelu(x, lower, upper); });
}

Tensor ELU::forward(const Tensor& x) const {
  return place.run("ELU", [&] { return elu(x, alpha); });
}

Tensor Hardtanh::forward(const Tensor& x) const {
  return place.run("Hardtanh", [&] { return hardtanh(x, min_val, max_val); });
}

Tensor Softplus::forward(const Tensor& x) const {
  return place.run("Softplus", [&] { return softplus(x, beta, threshold); });
}

Tensor Softmax::forward(const Tensor& x) const {
  return place.run("Softmax", [&] { return softmax(x, dim); });
}

Tensor LogSoftmax::forward(const Tensor& x) const {
  return place.run("LogSoftmax", [&] { return log_softmax(x, dim); });
}

Tensor CELU::forward(const Tensor& x) const {
  return place.run("CELU", [&] { return celu(x, alpha); });
}

Tensor Hardshrink::forward(const Tensor& x) const {
  return place.run("Hardshrink", [&] { return hardshrink(x, lambda); });
}

Tensor Softshrink::forward(const Tensor& x) const {
  return place.run("Softshrink", [&] { return softshrink(x, lambda); });
}

Tensor Tanhshrink::forward(const Tensor& x) const {
  return place.run("Tanhshrink", [&] { return tanhshrink(x); });
}

Tensor Threshold::forward(const Tensor& x) const {
  return place.run("Threshold", [&] { return ballast::threshold(x, threshold, value); });
}

Tensor GLU::forward(const Tensor& x) const {
  return place.run("GLU", [&] { return glu(x, dim); });
}

Tensor Softmin::forward(const Tensor& x) const {
  return place.run("Softmin", [&] { return softmin(x, dim); });
}

}  // namespace ballast::nn
