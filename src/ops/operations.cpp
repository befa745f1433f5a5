// SPDX-License-Identifier: Apache-2.0
#include "ops/operations.h"

#include "ops/counting.h"

namespace ballast::operations {
namespace {

template <class... Rows>
constexpr std::array<const Operation*, sizeof...(Rows)> listed(const Rows&... rows) {
  return {&rows...};
}

constexpr auto kTable = listed(
    permute, narrow, unsqueeze, squeeze, expand, reshape, slice, select, clone, cast, add, sub, mul, div, pow,
    minimum, maximum, remainder, atan2, log2, neg, abs, sign, square, exp, expm1, log, log1p, sqrt, rsqrt,
    reciprocal, sin, cos, tan, erf, floor, ceil, round, trunc, eq, ne, lt, le, gt, ge, logical_and,
    logical_or, logical_xor, logical_not, isnan, isinf, where, clamp, gelu, gelu_tanh, silu, log_sigmoid,
    softsign, hardswish, hardsigmoid, mish, relu, sigmoid, tanh, relu6, selu, elu, leaky_relu, softplus,
    hardtanh, prelu, softmax, log_softmax, sum, prod, mean, logsumexp, max, min, any, all, var, stddev, norm,
    argmax, argmin, cumsum, cumprod, sort, topk, concat, tril, triu, pad, gather, scatter, scatter_add,
    index_select, embedding, one_hot, full, arange, arange_real, linspace, eye, rand, randn, randint, matmul,
    linear, conv, conv_transpose, max_pool, max_pool_with_indices, avg_pool, adaptive_avg_pool,
    adaptive_max_pool, batch_norm, layer_norm, rms_norm, group_norm, instance_norm, resize, nonzero, nms,
    roi_align, grid_sample, dft, lstm, gru, rnn, scaled_dot_product_attention);

}  // namespace

std::span<const Operation* const> table() {
  return kTable;
}

bool counts_values(const Operation& operation) noexcept {
  return &operation == &nonzero || &operation == &nms;
}

}  // namespace ballast::operations
