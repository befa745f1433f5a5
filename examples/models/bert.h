// SPDX-License-Identifier: Apache-2.0
// A BERT of any size under the names Hugging Face gives it, with a head that tells sentences apart.
#pragma once

#include <vector>

#include "attention.h"
#include "ballast/nn.h"
#include "ballast/ops.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

/// As in config.json; the defaults are BERT base.
struct BertConfig {
  std::int64_t vocab_size = 30522;
  std::int64_t max_position_embeddings = 512;
  std::int64_t type_vocab_size = 2;
  std::int64_t hidden_size = 768;
  std::int64_t intermediate_size = 3072;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t num_labels = 2;
};

inline constexpr nn::LayerNormOptions kBertNorm{.eps = 1e-12};

struct BertEmbeddings {
  nn::Embedding word_embeddings;
  nn::Embedding position_embeddings;
  nn::Embedding token_type_embeddings;
  nn::LayerNorm LayerNorm;

  Tensor forward(const Tensor& tokens, const Tensor& types) const {
    return LayerNorm.forward(word_embeddings.forward(tokens) + token_type_embeddings.forward(types) +
                             position_embeddings.forward(ballast::arange(0, tokens.shape()[1])));
  }
};

struct BertSelfAttention {
  std::int64_t heads;
  nn::Linear query;
  nn::Linear key;
  nn::Linear value;

  /// `mask` is BOOL [batch, 1, 1, tokens], true where there is a word.
  Tensor forward(const Tensor& x, const Tensor& mask) const {
    return join_heads(ballast::scaled_dot_product_attention(
        split_heads(query.forward(x), heads), split_heads(key.forward(x), heads),
        split_heads(value.forward(x), heads), {.mask = mask}));
  }
};

/// What attention and the feed-forward part end in: a linear map, the input added, a norm.
struct BertOutput {
  nn::Linear dense;
  nn::LayerNorm LayerNorm;

  Tensor forward(const Tensor& x, const Tensor& input) const {
    return LayerNorm.forward(dense.forward(x) + input);
  }
};

struct BertAttention {
  BertSelfAttention self;
  BertOutput output;
};

struct BertIntermediate {
  nn::Linear dense;
};

struct BertLayer {
  BertAttention attention;
  BertIntermediate intermediate;
  BertOutput output;

  Tensor forward(const Tensor& x, const Tensor& mask) const {
    const Tensor attended = attention.output.forward(attention.self.forward(x, mask), x);
    return output.forward(intermediate.dense.forward(attended, ballast::Activation::Kind::gelu), attended);
  }

  static BertLayer make(const BertConfig& config) {
    const std::int64_t size = config.hidden_size;
    return {.attention{.self{config.num_attention_heads, {size, size}, {size, size}, {size, size}},
                       .output{{size, size}, {size, kBertNorm}}},
            .intermediate{{size, config.intermediate_size}},
            .output{{config.intermediate_size, size}, {size, kBertNorm}}};
  }
};

struct BertEncoder {
  std::vector<BertLayer> layer;
};

struct BertPooler {
  nn::Linear dense;
};

struct BertModel {
  BertEmbeddings embeddings;
  BertEncoder encoder;
  BertPooler pooler;

  /// [batch, tokens, hidden]
  Tensor forward(const Tensor& tokens, const Tensor& types, const Tensor& mask) const {
    Tensor x = embeddings.forward(tokens, types);
    for (const BertLayer& layer : encoder.layer) x = layer.forward(x, mask);
    return x;
  }
};

struct BertForSequenceClassification {
  BertModel bert;
  nn::Linear classifier;

  /// tokens and types I64 [batch, tokens], words BOOL [batch, tokens] → [batch, labels].
  Tensor forward(const Tensor& tokens, const Tensor& types, const Tensor& words) const {
    const Tensor x =
        bert.forward(tokens, types, words.index({ballast::Slice{}, ballast::new_axis, ballast::new_axis}));
    const Tensor first = x.index({ballast::Slice{}, 0});
    return classifier.forward(bert.pooler.dense.forward(first, ballast::Activation::Kind::tanh));
  }

  static BertForSequenceClassification make(const BertConfig& config) {
    const std::int64_t size = config.hidden_size;
    return {.bert{.embeddings{{config.vocab_size, size},
                              {config.max_position_embeddings, size},
                              {config.type_vocab_size, size},
                              {size, kBertNorm}},
                  .encoder{std::vector<BertLayer>(static_cast<std::size_t>(config.num_hidden_layers),
                                                  BertLayer::make(config))},
                  .pooler{{size, size}}},
            .classifier{size, config.num_labels}};
  }
};

}  // namespace models
