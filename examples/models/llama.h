// SPDX-License-Identifier: Apache-2.0
// Llama of any size under the names Hugging Face gives it: rotary positions, fewer heads for keys and values
// than for queries, RMS norms, gated feed-forward layers, a key/value cache. lm_head may be the embedding.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "attention.h"
#include "ballast/load.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "checks.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

/// How positions turn: rope_parameters of config.json today, rope_scaling in older ones.
struct LlamaRope {
  std::optional<double> rope_theta;
  std::optional<std::string> rope_type;
  std::optional<std::string> type;  // what it was called at first
  std::optional<double> factor;
  std::optional<double> low_freq_factor;
  std::optional<double> high_freq_factor;
  std::optional<double> original_max_position_embeddings;
};

/// As in config.json.
struct LlamaConfig {
  std::string model_type;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::optional<std::int64_t> num_key_value_heads;
  std::optional<std::int64_t> head_dim;
  double rms_norm_eps = 0;
  std::string hidden_act;
  std::optional<bool> attention_bias;
  std::optional<bool> mlp_bias;
  std::optional<bool> tie_word_embeddings;
  std::optional<double> rope_theta;
  std::optional<LlamaRope> rope_scaling;
  std::optional<LlamaRope> rope_parameters;
};

/// Features i and i + half of each head are a point in a plane, turned by the token's position.
struct Rotary {
  std::vector<float> turns;  // for one step, in radians: one for each plane

  static Rotary make(const LlamaConfig& config, std::int64_t features) {
    const LlamaRope rope = config.rope_parameters.value_or(config.rope_scaling.value_or(LlamaRope{}));
    const std::string type = rope.rope_type.value_or(rope.type.value_or("default"));
    require(type == "default" || type == "llama3", "llama",
            "rotary positions of type " + ballast::quoted(type));
    const double theta = rope.rope_theta.value_or(config.rope_theta.value_or(10000));
    Rotary rotary;
    for (std::int64_t i = 0; i < features; i += 2) {
      const double turn = std::pow(theta, -static_cast<double>(i) / static_cast<double>(features));
      rotary.turns.push_back(static_cast<float>(type == "llama3" ? stretched(turn, rope) : turn));
    }
    return rotary;
  }

  /// Llama 3.1's: slow turns are slowed by a factor, fast ones are not, and between there is a ramp.
  static double stretched(double turn, const LlamaRope& rope) {
    require(
        rope.original_max_position_embeddings && rope.low_freq_factor && rope.high_freq_factor && rope.factor,
        "llama", "rotary positions of type llama3 without their factors");
    const double rounds = rope.original_max_position_embeddings.value() * turn / (2 * std::numbers::pi);
    const double low = rope.low_freq_factor.value();
    const double kept = std::clamp((rounds - low) / (rope.high_freq_factor.value() - low), 0.0, 1.0);
    return kept * turn + (1 - kept) * turn / rope.factor.value();
  }

  /// x [batch, heads, tokens, features], the first token at position `before`.
  [[nodiscard]] Tensor forward(const Tensor& x, std::int64_t before) const {
    const auto half = static_cast<std::int64_t>(turns.size());
    const Tensor angles =
        ballast::arange(before, before + x.size(2)).unsqueeze(1) * Tensor::from(turns, {half});
    const Tensor cos = ballast::cos(angles);
    const Tensor sin = ballast::sin(angles);
    const std::vector<Tensor> point = ballast::chunk(x, 2, -1);
    return ballast::concat({point[0] * cos - point[1] * sin, point[1] * cos + point[0] * sin}, -1);
  }
};

struct LlamaAttention {
  std::int64_t heads;
  std::int64_t key_heads;
  Rotary rotary;
  nn::Linear q_proj;
  nn::Linear k_proj;
  nn::Linear v_proj;
  nn::Linear o_proj;

  Tensor forward(const Tensor& x, nn::KVCache& cache) const {
    const std::int64_t before = cache.length();
    const Tensor queries = rotary.forward(split_heads(q_proj(x), heads), before);
    const nn::KVCache::Seen seen = cache.append(rotary.forward(split_heads(k_proj(x), key_heads), before),
                                                split_heads(v_proj(x), key_heads));
    // Each head of keys serves several of queries: [batch, key heads, queries of one, tokens, features].
    const std::int64_t batch = x.size(0);
    const Tensor mixed = ballast::scaled_dot_product_attention(
        queries.reshape({batch, key_heads, heads / key_heads, x.size(1), queries.size(3)}),
        seen.keys.unsqueeze(2), seen.values.unsqueeze(2), {.causal = true, .query_offset = before});
    return o_proj(join_heads(mixed.reshape(queries.shape())));
  }

  static LlamaAttention make(const LlamaConfig& config) {
    const std::int64_t size = config.hidden_size;
    const std::int64_t features = config.head_dim.value_or(size / config.num_attention_heads);
    const std::int64_t key_heads = config.num_key_value_heads.value_or(config.num_attention_heads);
    const std::int64_t width = config.num_attention_heads * features;
    const nn::LinearOptions options{.bias = config.attention_bias.value_or(false)};
    return {.heads = config.num_attention_heads,
            .key_heads = key_heads,
            .rotary = Rotary::make(config, features),
            .q_proj{size, width, options},
            .k_proj{size, key_heads * features, options},
            .v_proj{size, key_heads * features, options},
            .o_proj{width, size, options}};
  }
};

struct LlamaMlp {
  nn::Linear gate_proj;
  nn::Linear up_proj;
  nn::Linear down_proj;

  Tensor forward(const Tensor& x) const {
    return down_proj(gate_proj(x, ballast::Activation::Kind::silu) * up_proj(x));
  }
};

struct LlamaLayer {
  nn::RMSNorm input_layernorm;
  LlamaAttention self_attn;
  nn::RMSNorm post_attention_layernorm;
  LlamaMlp mlp;

  Tensor forward(const Tensor& x, nn::KVCache& cache) const {
    const Tensor attended = x + self_attn.forward(input_layernorm(x), cache);
    return attended + mlp.forward(post_attention_layernorm(attended));
  }

  static LlamaLayer make(const LlamaConfig& config) {
    const std::int64_t size = config.hidden_size;
    const std::int64_t inner = config.intermediate_size;
    const nn::LinearOptions options{.bias = config.mlp_bias.value_or(false)};
    return {.input_layernorm{size, {.eps = config.rms_norm_eps}},
            .self_attn = LlamaAttention::make(config),
            .post_attention_layernorm{size, {.eps = config.rms_norm_eps}},
            .mlp{{size, inner, options}, {size, inner, options}, {inner, size, options}}};
  }
};

struct LlamaModel {
  nn::Embedding embed_tokens;
  std::vector<LlamaLayer> layers;
  nn::RMSNorm norm;
};

struct Llama {
  LlamaModel model;
  nn::Linear lm_head;

  using Cache = std::vector<nn::KVCache>;

  /// I64 [batch, tokens], which follow those the cache has seen → [batch, tokens, vocabulary].
  Tensor forward(const Tensor& tokens, Cache& cache) const {
    cache.resize(model.layers.size());
    Tensor x = model.embed_tokens(tokens);
    for (std::size_t i = 0; i < model.layers.size(); ++i) x = model.layers[i].forward(x, cache[i]);
    return lm_head(model.norm(x));
  }

  static Llama make(const LlamaConfig& config) {
    require_type(config.model_type, "llama");
    require(config.hidden_act == "silu", "llama", "hidden_act " + ballast::quoted(config.hidden_act));
    return {.model{.embed_tokens{config.vocab_size, config.hidden_size},
                   .layers = std::vector<LlamaLayer>(static_cast<std::size_t>(config.num_hidden_layers),
                                                     LlamaLayer::make(config)),
                   .norm{config.hidden_size, {.eps = config.rms_norm_eps}}},
            .lm_head{config.hidden_size, config.vocab_size, {.bias = false}}};
  }

  /// Tied files leave lm_head out, or have it twice; old ones have the turns as a buffer.
  static ballast::LoadOptions load_options(const LlamaConfig& config) {
    ballast::LoadOptions options{.rules = {ballast::rules::Drop{R"(\.rotary_emb\.inv_freq$)"}},
                                 .dtype = ballast::Precision::full,
                                 .unused = ballast::OnUnused::error};
    if (config.tie_word_embeddings.value_or(false)) {
      options.rules.emplace_back(ballast::rules::Drop{R"(^lm_head\.weight$)"});
      options.rules.emplace_back(ballast::rules::Alias{R"(^model\.embed_tokens\.weight$)", "lm_head.weight"});
    }
    return options;
  }
};

}  // namespace models
