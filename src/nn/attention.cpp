// SPDX-License-Identifier: Apache-2.0
#include "ballast/nn/attention.h"

#include "nn/parameters.h"

namespace ballast::nn {

MultiheadAttention::MultiheadAttention(std::int64_t embed, std::int64_t heads,
                                       const MultiheadAttentionOptions& attention_options)
    : embed_dim(embed),
      num_heads(heads),
      options(attention_options),
      query(embed, embed, {.bias = options.bias}),
      key(options.kdim.value_or(embed), embed, {.bias = options.bias}),
      value(options.vdim.value_or(embed), embed, {.bias = options.bias}),
      output(embed, embed, {.bias = options.bias}) {
  require_positive("MultiheadAttention", "the number of heads", heads);
  if (embed % heads != 0)
    fail(Errc::invalid_argument, "MultiheadAttention", "{} features cannot be split into {} heads", embed,
         heads);
  if (options.add_bias_kv) bias_k = bias_v = parameter({1, 1, embed});
}

namespace {

MultiheadAttentionOptions attention_options(const TransformerLayerOptions& options) {
  return {.dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first};
}

LayerNormOptions norm_options(const TransformerLayerOptions& options) {
  return {.eps = options.layer_norm_eps, .bias = options.bias};
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t model, std::int64_t heads,
                                                 const TransformerLayerOptions& layer_options)
    : options(layer_options),
      self_attn(model, heads, attention_options(options)),
      linear1(model, options.dim_feedforward, {.bias = options.bias}),
      linear2(options.dim_feedforward, model, {.bias = options.bias}),
      norm1(model, norm_options(options)),
      norm2(model, norm_options(options)) {}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t model, std::int64_t heads,
                                                 const TransformerLayerOptions& layer_options)
    : options(layer_options),
      self_attn(model, heads, attention_options(options)),
      multihead_attn(model, heads, attention_options(options)),
      linear1(model, options.dim_feedforward, {.bias = options.bias}),
      linear2(options.dim_feedforward, model, {.bias = options.bias}),
      norm1(model, norm_options(options)),
      norm2(model, norm_options(options)),
      norm3(model, norm_options(options)) {}

}  // namespace ballast::nn
