// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/activation.h"

#include <cmath>

#include "ballast/detail/ops/elementwise.h"
#include "ops/activation.h"
#include "ops/args.h"
#include "ops/elementwise.h"
#include "ops/softmax.h"
#include "tensor/trace.h"

namespace ballast {
namespace ops {

ActivationKernel kernel_of(Activation activation) {
  using Kind = Activation::Kind;
  switch (activation.kind) {
    case Kind::none:
      break;
    case Kind::relu:
      return {Unary::relu};
    case Kind::relu6:
      return {Unary::clamp, 0, 6};
    case Kind::gelu:
      return {Unary::gelu};
    case Kind::gelu_tanh:
      return {Unary::gelu_tanh};
    case Kind::silu:
      return {Unary::silu};
    case Kind::sigmoid:
      return {Unary::sigmoid};
    case Kind::tanh:
      return {Unary::tanh};
    case Kind::leaky_relu:
      return {Unary::leaky_relu, activation.number()};
    case Kind::elu:
      return {Unary::elu, activation.number(), 1};
    case Kind::hardswish:
      return {Unary::hardswish};
    case Kind::hardsigmoid:
      return {Unary::hardsigmoid};
    case Kind::mish:
      return {Unary::mish};
  }
  return {Unary::scale_shift, 1, 0};
}

void activate_in_place(Tensor& x, Activation activation) {
  if (activation.kind == Activation::Kind::none) return;
  const ActivationKernel kernel = kernel_of(activation);
  unary_in_place(kernel.which, x, kernel.p, kernel.q);
}

namespace {

Tensor floating(const char* op, Unary which, const Tensor& x, double p = 0, double q = 0) {
  return unary(op, which, x, OnIntegers::refuse, p, q);
}

}  // namespace
}  // namespace ops

using ops::floating;
using ops::Unary;

Tensor relu(const Tensor& x) {
  return ops::unary("relu", Unary::relu, x, ops::OnIntegers::keep);
}

Tensor relu6(const Tensor& x) {
  return ops::unary("relu6", Unary::clamp, x, ops::OnIntegers::keep, 0, 6);
}

Tensor gelu(const Tensor& x) {
  return floating("gelu", Unary::gelu, x);
}

Tensor gelu_tanh(const Tensor& x) {
  return floating("gelu_tanh", Unary::gelu_tanh, x);
}

Tensor silu(const Tensor& x) {
  return floating("silu", Unary::silu, x);
}

Tensor sigmoid(const Tensor& x) {
  return ops::unary("sigmoid", Unary::sigmoid, x, ops::OnIntegers::to_float);
}

Tensor log_sigmoid(const Tensor& x) {
  return floating("log_sigmoid", Unary::log_sigmoid, x);
}

Tensor tanh(const Tensor& x) {
  return ops::unary("tanh", Unary::tanh, x, ops::OnIntegers::to_float);
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  return floating("softplus", Unary::softplus, x, beta, threshold);
}

Tensor softsign(const Tensor& x) {
  return floating("softsign", Unary::softsign, x);
}

Tensor elu(const Tensor& x, double alpha) {
  return floating("elu", Unary::elu, x, alpha, 1);
}

Tensor selu(const Tensor& x) {
  return floating("selu", Unary::elu, x, 1.6732632423543772848170429916717,
                  1.0507009873554804934193349852946);
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return floating("leaky_relu", Unary::leaky_relu, x, negative_slope);
}

Tensor hardswish(const Tensor& x) {
  return floating("hardswish", Unary::hardswish, x);
}

Tensor hardsigmoid(const Tensor& x) {
  return floating("hardsigmoid", Unary::hardsigmoid, x);
}

Tensor hardtanh(const Tensor& x, double low, double high) {
  if (low > high)
    fail(Errc::invalid_argument, "hardtanh", "the bounds {} and {} are the wrong way round", low, high);
  if (std::isnan(low) || std::isnan(high)) return clamp(x, low, high);
  return floating("hardtanh", Unary::clamp, x, low, high);
}

Tensor mish(const Tensor& x) {
  return floating("mish", Unary::mish, x);
}

Tensor prelu(const Tensor& x, const Tensor& alpha) {
  const std::int64_t channels = x.rank() > 1 ? x.shape()[1] : 1;
  if (alpha.numel() != 1 && alpha.numel() != channels) {
    fail(Errc::shape_mismatch, "prelu", "alpha is {} for {}: must have 1 element or {}", ops::form(alpha),
         ops::form(x), channels);
  }
  Shape shape = Dims::filled(x.rank(), 1);
  if (alpha.numel() != 1) shape[1] = channels;
  return ops::arithmetic("prelu", ops::Binary::prelu, x, alpha.to(x.dtype()).reshape(shape));
}

namespace {

Tensor activate_by_name(const Tensor& x, Activation activation) {
  using Kind = Activation::Kind;
  switch (activation.kind) {
    case Kind::none:
      break;
    case Kind::relu:
      return relu(x);
    case Kind::relu6:
      return relu6(x);
    case Kind::gelu:
      return gelu(x);
    case Kind::gelu_tanh:
      return gelu_tanh(x);
    case Kind::silu:
      return silu(x);
    case Kind::sigmoid:
      return sigmoid(x);
    case Kind::tanh:
      return tanh(x);
    case Kind::leaky_relu:
      return leaky_relu(x, activation.number());
    case Kind::elu:
      return elu(x, activation.number());
    case Kind::hardswish:
      return hardswish(x);
    case Kind::hardsigmoid:
      return hardsigmoid(x);
    case Kind::mish:
      return mish(x);
  }
  return x;
}

}  // namespace

Tensor activate(const Tensor& x, Activation activation) {
  if (activation.kind == Activation::Kind::none) return x;
  if (tracing::on()) return activate_by_name(x, activation);
  const ops::ActivationKernel kernel = ops::kernel_of(activation);
  return floating("activation", kernel.which, x, kernel.p, kernel.q);
}

Tensor softmax(const Tensor& x, std::int64_t dim) {
  return ops::softmax_along("softmax", x, dim, ops::kernels().softmax);
}

Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  return ops::softmax_along("log_softmax", x, dim, ops::kernels().log_softmax);
}

}  // namespace ballast
