// SPDX-License-Identifier: Apache-2.0
// THE table of operations: one row each (ballast/operation.h says what is in it), defined beside its kernel
// in the file of its family. run() calls them, traces write them down by their address, and src/onnx/ has for
// each one more column, what it is in ONNX. Functions that are made of other operations have no row.
#pragma once

#include <array>
#include <span>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/resize.h"
#include "ballast/detail/ops/rnn.h"
#include "ballast/operation.h"
#include "ops/forms.h"
#include "tensor/view_operations.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

namespace ops {

struct ConvShapes;
struct PoolSizes;

/// Weights of all layers and directions, five tensors each.
struct RecurrentSets {
  std::span<const RecurrentWeights> sets;

  template <class Visit>
  void for_each_tensor(const Visit& visit) const {
    for (const RecurrentWeights& w : sets)
      for (const Tensor* one : {&w.weight_ih, &w.weight_hh, &w.bias_ih, &w.bias_hh, &w.weight_hr})
        visit(*one);
  }
};

/// An operation whose last argument is an activation: in a trace that is an operation of its own.
template <class... Arguments, class... Given>
Tensor run_activated(const OperationOf<Tensor(Arguments...)>& operation, Activation activation,
                     const Given&... given) {
  if (detail::is_tracing()) return activate(run(operation, given..., Activation{}), activation);
  return run(operation, given..., activation);
}

}  // namespace ops

// No part of what a trace writes down.
inline Attributes attributes_of(const Activation& /*activation*/) {
  return {};
}

inline Attributes attributes_of(const Generator& /*generator*/) {
  return {};
}

namespace operations {

namespace forms = ops::forms;

/// All of them.
[[nodiscard]] std::span<const Operation* const> table();

/// What most rows say of themselves.
constexpr Operation about(const char* name, std::array<const char*, 6> inputs,
                          std::array<const char*, 8> attributes, FormRule form) {
  return {.name = name, .inputs = inputs, .attributes = attributes, .form = form};
}

using Function = OperationOf<Tensor(const Tensor&)>;
using OneNumber = OperationOf<Tensor(const Tensor&, double)>;
using TwoNumbers = OperationOf<Tensor(const Tensor&, double, double)>;
using Along = OperationOf<Tensor(const Tensor&, std::int64_t)>;
using Arithmetic = OperationOf<Tensor(const Operand&, const Operand&)>;
// Over the memory of one of them, where it is not undefined: nobody looks at it any more.
using Sum = OperationOf<Tensor(const Operand&, const Operand&, const Tensor*, Activation)>;
using Comparison = OperationOf<Tensor(const Operand&, const Operand&, DType)>;
using ThreeOperands = OperationOf<Tensor(const Tensor&, const Operand&, const Operand&)>;
using Reduction = OperationOf<Tensor(const Tensor&, const Dims&, bool)>;
using Spread = OperationOf<Tensor(const Tensor&, const Dims&, bool, std::int64_t)>;
using Ordering = OperationOf<std::array<Tensor, 2>(const Tensor&, std::int64_t, std::int64_t, bool)>;
using Linear = OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, OpCache*, Activation)>;
using Convolution = OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, const ops::ConvShapes&,
                                       OpCache*, Activation)>;
using Recurrent = OperationOf<std::array<Tensor, 3>(const Tensor&, const Tensor&, const Tensor&,
                                                    const ops::RecurrentSets&, bool, bool, bool, OpCache*)>;

// arithmetic.cpp
extern const Sum add;
extern const Arithmetic remainder, atan2;  // rare.cpp
extern const Function log2;
extern const Arithmetic sub, mul, div, pow, minimum, maximum;
extern const Function neg, abs, sign, square, exp, expm1, log, log1p, sqrt, rsqrt, reciprocal, sin, cos, tan,
    erf, floor, ceil, round, trunc;
extern const Comparison eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor, logical_not, isnan,
    isinf;
extern const ThreeOperands where;
extern const TwoNumbers clamp;

// activation.cpp
extern const Function gelu, gelu_tanh, silu, log_sigmoid, softsign, hardswish, hardsigmoid, mish, relu,
    sigmoid, tanh, relu6, selu;
extern const OneNumber elu, leaky_relu;
extern const TwoNumbers softplus, hardtanh;
extern const Arithmetic prelu;
extern const Along softmax, log_softmax;

// reduce.cpp
extern const Reduction sum, prod, mean, logsumexp, max, min, any, all, argmax, argmin;
extern const Spread var, stddev;
extern const OperationOf<Tensor(const Tensor&, const Dims&, bool, double)> norm;

// sort.cpp
extern const Along cumsum, cumprod;
extern const Ordering sort, topk;

// movement.cpp
extern const OperationOf<Tensor(std::span<const Tensor>, std::int64_t)> concat;
extern const Along tril, triu;

// pad.cpp
extern const OperationOf<Tensor(const Tensor&, const Dims&, PadMode, double)> pad;

// indexing.cpp
extern const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&)> gather, index_select;
extern const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&, const Operand&)> scatter;
extern const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&, const Tensor&)> scatter_add;
extern const OperationOf<Tensor(const Tensor&, const Tensor&)> embedding;
extern const OperationOf<Tensor(const Tensor&, std::int64_t)> one_hot;

// create.cpp
extern const OperationOf<Tensor(const Dims&, double, DType)> full;
extern const OperationOf<Tensor(std::int64_t, std::int64_t, std::int64_t)> arange;
extern const OperationOf<Tensor(double, double, double, DType)> arange_real;
extern const OperationOf<Tensor(double, double, std::int64_t)> linspace;
extern const OperationOf<Tensor(std::int64_t, std::int64_t, DType)> eye;
extern const OperationOf<Tensor(const Dims&, Generator&)> rand, randn;
extern const OperationOf<Tensor(std::int64_t, std::int64_t, const Dims&, Generator&)> randint;

// matmul.cpp
extern const OperationOf<Tensor(const Tensor&, const Tensor&)> matmul;

// linear.cpp
extern const Linear linear;

// attention.cpp
extern const OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool,
                                std::int64_t, double)>
    scaled_dot_product_attention;

// conv.cpp
extern const Convolution conv, conv_transpose;

// pool.cpp
extern const OperationOf<Tensor(const Tensor&, const ops::PoolSizes&, bool)> max_pool;
extern const OperationOf<std::array<Tensor, 2>(const Tensor&, const ops::PoolSizes&, bool)>
    max_pool_with_indices;
extern const OperationOf<Tensor(const Tensor&, const ops::PoolSizes&, bool, bool, std::int64_t)> avg_pool;
extern const OperationOf<Tensor(const Tensor&, const Dims&)> adaptive_avg_pool, adaptive_max_pool;

// norm.cpp
extern const OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                double)>
    batch_norm;
extern const OperationOf<Tensor(const Tensor&, const Dims&, const Tensor&, const Tensor&, double)> layer_norm;
extern const OperationOf<Tensor(const Tensor&, const Dims&, const Tensor&, double)> rms_norm;
extern const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&, const Tensor&, double)>
    group_norm;
extern const OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, double)> instance_norm;

// boxes.cpp
extern const OperationOf<Tensor(const Tensor&, const Tensor&, const Dims&, double, std::int64_t, bool)>
    roi_align;

// resize.cpp
extern const OperationOf<Tensor(const Tensor&, const ResizeArgs&)> resize;

// grid_sample.cpp
extern const OperationOf<Tensor(const Tensor&, const Tensor&, GridMode, GridPadding, bool)> grid_sample;

// fft.cpp
extern const OperationOf<Tensor(const Tensor&, bool, bool)> dft;

// rnn.cpp
extern const Recurrent lstm, gru, rnn;

}  // namespace operations
}  // namespace ballast

#pragma GCC visibility pop
