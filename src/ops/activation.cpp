// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/activation.h"

#include <cmath>

#include "ballast/detail/ops/elementwise.h"
#include "ops/activation.h"
#include "ops/args.h"
#include "ops/elementwise.h"
#include "ops/softmax.h"

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

Tensor relu6_cpu(const Operation& op, const Tensor& x) {
  return unary(op.name, Unary::clamp, x, OnIntegers::keep, 0, 6);
}

Tensor selu_cpu(const Operation& op, const Tensor& x) {
  return unary(op.name, Unary::elu, x, OnIntegers::refuse, kSeluAlpha, kSeluScale);
}

Tensor elu_cpu(const Operation& op, const Tensor& x, double alpha) {
  return unary(op.name, Unary::elu, x, OnIntegers::refuse, alpha, 1);
}

Tensor leaky_relu_cpu(const Operation& op, const Tensor& x, double negative_slope) {
  return unary(op.name, Unary::leaky_relu, x, OnIntegers::refuse, negative_slope);
}

Tensor softplus_cpu(const Operation& op, const Tensor& x, double beta, double threshold) {
  return unary(op.name, Unary::softplus, x, OnIntegers::refuse, beta, threshold);
}

Tensor hardtanh_cpu(const Operation& op, const Tensor& x, double low, double high) {
  return unary(op.name, Unary::clamp, x, OnIntegers::refuse, low, high);
}

Tensor softmax_cpu(const Operation& op, const Tensor& x, std::int64_t dim) {
  if (x.dtype() == DType::f64) return wide_softmax(op.name, x, dim, false);
  return softmax_along(op.name, x, dim, kernels().softmax);
}

Tensor log_softmax_cpu(const Operation& op, const Tensor& x, std::int64_t dim) {
  if (x.dtype() == DType::f64) return wide_softmax(op.name, x, dim, true);
  return softmax_along(op.name, x, dim, kernels().log_softmax);
}

}  // namespace
}  // namespace ops

namespace operations {

using ops::arithmetic_row;
using ops::Binary;
using ops::function_row;
using ops::OnIntegers;
using ops::Unary;

constinit const Function gelu = function_row<Unary::gelu, OnIntegers::refuse>("gelu");
constinit const Function gelu_tanh = function_row<Unary::gelu_tanh, OnIntegers::refuse>("gelu_tanh");
constinit const Function silu = function_row<Unary::silu, OnIntegers::refuse>("silu");
constinit const Function log_sigmoid = function_row<Unary::log_sigmoid, OnIntegers::refuse>("log_sigmoid");
constinit const Function softsign = function_row<Unary::softsign, OnIntegers::refuse>("softsign");
constinit const Function hardswish = function_row<Unary::hardswish, OnIntegers::refuse>("hardswish");
constinit const Function hardsigmoid = function_row<Unary::hardsigmoid, OnIntegers::refuse>("hardsigmoid");
constinit const Function mish = function_row<Unary::mish, OnIntegers::refuse>("mish");
constinit const Function relu = function_row<Unary::relu, OnIntegers::keep>("relu");
constinit const Function sigmoid = function_row<Unary::sigmoid, OnIntegers::to_float>("sigmoid");
constinit const Function tanh = function_row<Unary::tanh, OnIntegers::to_float>("tanh");
constinit const Function relu6 = {about("relu6", {"x"}, {}, forms::function), {ops::relu6_cpu}};
constinit const Function selu = {about("selu", {"x"}, {}, forms::function), {ops::selu_cpu}};
constinit const OneNumber elu = {about("elu", {"x"}, {"alpha"}, forms::function), {ops::elu_cpu}};
constinit const OneNumber leaky_relu = {about("leaky_relu", {"x"}, {"negative_slope"}, forms::function),
                                        {ops::leaky_relu_cpu}};
constinit const TwoNumbers softplus = {about("softplus", {"x"}, {"beta", "threshold"}, forms::function),
                                       {ops::softplus_cpu}};
constinit const TwoNumbers hardtanh = {about("hardtanh", {"x"}, {"low", "high"}, forms::function),
                                       {ops::hardtanh_cpu}};
constinit const Arithmetic prelu = arithmetic_row<Binary::prelu>("prelu", forms::prelu);
constinit const Along softmax = {about("softmax", {"x"}, {"dim"}, forms::softmax), {ops::softmax_cpu}};
constinit const Along log_softmax = {about("log_softmax", {"x"}, {"dim"}, forms::softmax),
                                     {ops::log_softmax_cpu}};

}  // namespace operations

Tensor relu(const Tensor& x) {
  return run(operations::relu, x);
}

Tensor relu6(const Tensor& x) {
  return run(operations::relu6, x);
}

Tensor gelu(const Tensor& x) {
  return run(operations::gelu, x);
}

Tensor gelu_tanh(const Tensor& x) {
  return run(operations::gelu_tanh, x);
}

Tensor silu(const Tensor& x) {
  return run(operations::silu, x);
}

Tensor sigmoid(const Tensor& x) {
  return run(operations::sigmoid, x);
}

Tensor log_sigmoid(const Tensor& x) {
  return run(operations::log_sigmoid, x);
}

Tensor tanh(const Tensor& x) {
  return run(operations::tanh, x);
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  return run(operations::softplus, x, beta, threshold);
}

Tensor softsign(const Tensor& x) {
  return run(operations::softsign, x);
}

Tensor elu(const Tensor& x, double alpha) {
  return run(operations::elu, x, alpha);
}

Tensor selu(const Tensor& x) {
  return run(operations::selu, x);
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return run(operations::leaky_relu, x, negative_slope);
}

Tensor hardswish(const Tensor& x) {
  return run(operations::hardswish, x);
}

Tensor hardsigmoid(const Tensor& x) {
  return run(operations::hardsigmoid, x);
}

Tensor hardtanh(const Tensor& x, double low, double high) {
  if (low > high)
    fail(Errc::invalid_argument, "hardtanh", "the bounds {} and {} are the wrong way round", low, high);
  if (std::isnan(low) || std::isnan(high)) return clamp(x, low, high);
  return run(operations::hardtanh, x, low, high);
}

Tensor mish(const Tensor& x) {
  return run(operations::mish, x);
}

Tensor prelu(const Tensor& x, const Tensor& alpha) {
  const std::int64_t channels = x.rank() > 1 ? x.shape()[1] : 1;
  if (alpha.numel() != 1 && alpha.numel() != channels) {
    fail(Errc::shape_mismatch, "prelu", "alpha is {} for {}: must have 1 element or {}", ops::form(alpha),
         ops::form(x), channels);
  }
  Shape shape = Dims::filled(x.rank(), 1);
  if (alpha.numel() != 1) shape[1] = channels;
  return run(operations::prelu, x, alpha.to(x.dtype()).reshape(shape));
}

Tensor activate(const Tensor& x, Activation activation) {
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

Tensor softmax(const Tensor& x, std::int64_t dim) {
  return run(operations::softmax, x, dim);
}

Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  return run(operations::log_softmax, x, dim);
}

}  // namespace ballast
