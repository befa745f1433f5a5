// SPDX-License-Identifier: Apache-2.0
// Products of matrices, and attention, which is made of them.
//
// Gives: the operands' dtype, in the shape that each function says. Throws: Errc::shape_mismatch for sizes
// that do not fit each other, or a tensor without dimensions; bad_dtype for operands of two dtypes, integers
// (einsum() takes I64), and F64 in bilinear() and attention; invalid_argument for an equation of einsum()
// that makes no sense or has another number of operands, and sizes of rotary_tables() below 1;
// size_overflow for tables, or positions, beyond 64 bits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/cache.h"
#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// NumPy's matmul: vectors, matrices, batches with broadcasting; any strides.
[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b);

/// What linear() does besides.
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

/// Einstein's sums: "bij,bjk->bik", "...i,ij", "ii->i". Letters on both sides of "->" stay, the others are
/// summed; without "->" those that stand once stay, in alphabetical order. Operands have one dtype (floating
/// or I64) and are multiplied from left to right.
[[nodiscard]] Tensor einsum(std::string_view equation, std::span<const Tensor> operands);

[[nodiscard]] inline Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span(operands.begin(), operands.size()));
}

/// Rotary position embedding: angles of positions, and vectors turned by them in pairs of features.
struct RotaryTables {
  Tensor cos;  ///< F32 [length, features / 2]
  Tensor sin;  ///< the same
};

/// Of positions first, first + 1, …: pair i turns by position * base ^ (-2 i / features), in F32 as Hugging
/// Face's models compute it.
[[nodiscard]] RotaryTables rotary_tables(std::int64_t length, std::int64_t features, double base = 10000,
                                         std::int64_t first = 0);

/// Which features are turned together.
enum class RotaryPairs : std::uint8_t {
  halves,      ///< feature i with i + features / 2: Llama as Hugging Face has it, GPT-NeoX, Qwen
  interleaved  ///< feature 2 i with 2 i + 1: GPT-J, Llama as Meta has it
};

/// x [..., length, features] turned by tables [length, rotary / 2] (or what broadcasts so); features beyond
/// `rotary` stay.
[[nodiscard]] Tensor rotary_embedding(const Tensor& x, const RotaryTables& tables,
                                      RotaryPairs pairs = RotaryPairs::halves);

/// PyTorch's attn_mask, is_causal and scale, and what a cache of keys needs.
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
