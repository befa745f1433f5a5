// SPDX-License-Identifier: Apache-2.0
// Products of matrices, and attention, which is made of them.
#pragma once

#include <cstdint>
#include <optional>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/cache.h"
#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// NumPy's matmul: vectors, matrices, batches with broadcasting; any strides.
[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b);

struct LinearArgs {
  Activation activation = {};
  OpCache* cache = nullptr;
};

/// x [..., in] times weight [in, out], plus bias [out] when it is defined. (PyTorch's weight is [out, in]:
/// hand over weight.t().)
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const LinearArgs& args = {});

/// out[..., o] = a[..., i] weight[o, i, j] b[..., j] + bias[o].
[[nodiscard]] Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight,
                              const Tensor& bias = {});

struct AttentionArgs {
  Tensor mask =
      {};  ///< broadcasts to [..., queries, keys]: BOOL, true where attention is paid; or numbers to be added
  bool causal = false;  ///< query i sees keys up to i + query_offset
  std::int64_t query_offset =
      0;  ///< the place of the first query among the keys: how many lie in the key/value cache before it
  std::optional<double> scale = {};  ///< 1 / sqrt(features) when absent
};

/// softmax(query key^T * scale) value for query [..., queries, features], key [..., keys, features], value
/// [..., keys, out]. A query that may look at nothing gets NaN, as in PyTorch.
[[nodiscard]] Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                  const AttentionArgs& args = {});

}  // namespace ballast

#pragma GCC visibility pop
