// SPDX-License-Identifier: Apache-2.0
// Attention and the transformer layers built on it, with PyTorch's member names. MultiheadAttention holds its
// projections apart: query, key, value and output, each like a Linear; PyTorch's packed in_proj_weight
// becomes three views of it.
#pragma once

#include <cstdint>
#include <optional>

#include "ballast/detail/nn/linear.h"
#include "ballast/detail/nn/norm.h"
#include "ballast/detail/nn/place.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true;
  bool add_bias_kv = false;
  bool add_zero_attn = false;
  std::optional<std::int64_t> kdim = {};
  std::optional<std::int64_t> vdim = {};
  bool batch_first = false;
};

/// PyTorch's masks: where a BOOL mask is true, nothing is looked at; numbers are added to the scores. (The
/// operation scaled_dot_product_attention has it the other way round, as PyTorch's has.)
struct AttentionMasks {
  Tensor attention = {};    ///< [queries, keys] or [batch * heads, queries, keys]
  Tensor key_padding = {};  ///< [batch, keys]
  bool causal = false;      ///< query i looks at the keys up to i
};

struct MultiheadAttention {
  static constexpr LayerKind kind = LayerKind::multihead_attention;
  std::int64_t embed_dim;
  std::int64_t num_heads;
  MultiheadAttentionOptions options;
  Linear query;
  Linear key;
  Linear value;
  Linear output;
  Tensor bias_k;  ///< [1, 1, embed], undefined without add_bias_kv
  Tensor bias_v;
  Place place;

  MultiheadAttention(std::int64_t embed, std::int64_t heads, const MultiheadAttentionOptions& options = {});

  /// [queries, batch, embed], or [batch, queries, embed] with batch_first, or without batch.
  [[nodiscard]] Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                               const AttentionMasks& masks = {}) const;

  /// A sequence that looks at itself.
  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionMasks& masks = {}) const {
    return forward(x, x, x, masks);
  }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) {
    visit("query.weight", self.query.weight);
    visit("key.weight", self.key.weight);
    visit("value.weight", self.value.weight);
    if (self.options.bias) {
      visit("query.bias", self.query.bias);
      visit("key.bias", self.key.bias);
      visit("value.bias", self.value.bias);
    }
    if (self.options.add_bias_kv) {
      visit("bias_k", self.bias_k);
      visit("bias_v", self.bias_v);
    }
    visit("output.weight", self.output.weight);
    if (self.options.bias) visit("output.bias", self.output.bias);
  }
};

enum class TransformerActivation : std::uint8_t { relu, gelu };

struct TransformerLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
};

struct TransformerEncoderLayer {
  TransformerLayerOptions options;
  MultiheadAttention self_attn;
  Linear linear1;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;

  TransformerEncoderLayer(std::int64_t model, std::int64_t heads,
                          const TransformerLayerOptions& options = {});

  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionMasks& masks = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
  BALLAST_FIELDS(self_attn, linear1, linear2, norm1, norm2);
};

struct TransformerDecoderLayer {
  TransformerLayerOptions options;
  MultiheadAttention self_attn;
  MultiheadAttention multihead_attn;
  Linear linear1;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;
  LayerNorm norm3;

  TransformerDecoderLayer(std::int64_t model, std::int64_t heads,
                          const TransformerLayerOptions& options = {});

  /// `memory` is the encoder's result.
  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks = {},
                               const AttentionMasks& memory_masks = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
  BALLAST_FIELDS(self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3);
};

}  // namespace ballast::nn

#pragma GCC visibility pop
