// SPDX-License-Identifier: Apache-2.0
// Whisper of any size under the names Hugging Face gives it: an encoder of sound, a decoder of text that
// looks at it. The head is the token embedding.
#pragma once

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

/// As in config.json.
struct WhisperConfig {
  std::string model_type;
  std::int64_t vocab_size = 0;
  std::int64_t num_mel_bins = 0;
  std::int64_t d_model = 0;
  std::int64_t encoder_layers = 0;
  std::int64_t encoder_attention_heads = 0;
  std::int64_t encoder_ffn_dim = 0;
  std::int64_t decoder_layers = 0;
  std::int64_t decoder_attention_heads = 0;
  std::int64_t decoder_ffn_dim = 0;
  std::int64_t max_source_positions = 0;
  std::int64_t max_target_positions = 0;
  std::string activation_function;
  bool scale_embedding = false;
};

struct WhisperAttention {
  std::int64_t heads;
  nn::Linear q_proj;
  nn::Linear k_proj;
  nn::Linear v_proj;
  nn::Linear out_proj;

  Tensor forward(const Tensor& x, const nn::KVCache::Seen& seen,
                 const ballast::AttentionArgs& args = {}) const {
    const Tensor queries = split_heads(q_proj(x), heads);
    return out_proj(join_heads(ballast::scaled_dot_product_attention(queries, seen.keys, seen.values, args)));
  }

  /// What there is to look at in x.
  nn::KVCache::Seen look(const Tensor& x) const {
    return {split_heads(k_proj(x), heads), split_heads(v_proj(x), heads)};
  }

  static WhisperAttention make(std::int64_t size, std::int64_t heads) {
    return {heads, {size, size}, {size, size, {.bias = false}}, {size, size}, {size, size}};
  }
};

struct WhisperEncoderLayer {
  WhisperAttention self_attn;
  nn::LayerNorm self_attn_layer_norm;
  nn::Linear fc1;
  nn::Linear fc2;
  nn::LayerNorm final_layer_norm;

  Tensor forward(const Tensor& x) const {
    const Tensor normed = self_attn_layer_norm(x);
    const Tensor attended = x + self_attn.forward(normed, self_attn.look(normed));
    return attended + fc2(fc1(final_layer_norm(attended), ballast::Activation::Kind::gelu));
  }
};

struct WhisperEncoder {
  nn::Conv1d conv1;
  nn::Conv1d conv2;
  nn::Embedding embed_positions;
  std::vector<WhisperEncoderLayer> layers;
  nn::LayerNorm layer_norm;

  /// [batch, bins, frames] → [batch, frames / 2, size]
  Tensor forward(const Tensor& sound) const {
    constexpr auto gelu = ballast::Activation::Kind::gelu;
    Tensor x = conv2(conv1(sound, gelu), gelu).permute({0, 2, 1}) + embed_positions.weight;
    for (const WhisperEncoderLayer& layer : layers) x = layer.forward(x);
    return layer_norm(x);
  }
};

struct WhisperDecoderLayer {
  WhisperAttention self_attn;
  nn::LayerNorm self_attn_layer_norm;
  WhisperAttention encoder_attn;
  nn::LayerNorm encoder_attn_layer_norm;
  nn::Linear fc1;
  nn::Linear fc2;
  nn::LayerNorm final_layer_norm;

  struct Seen {
    nn::KVCache text = {};
    nn::KVCache::Seen sound = {};
  };

  Tensor forward(const Tensor& x, Seen& seen) const {
    const Tensor normed = self_attn_layer_norm(x);
    const std::int64_t before = seen.text.length();
    const nn::KVCache::Seen more = self_attn.look(normed);
    const nn::KVCache::Seen text = seen.text.append(more.keys, more.values);
    const Tensor read = x + self_attn.forward(normed, text, {.causal = true, .query_offset = before});
    const Tensor heard = read + encoder_attn.forward(encoder_attn_layer_norm(read), seen.sound);
    return heard + fc2(fc1(final_layer_norm(heard), ballast::Activation::Kind::gelu));
  }
};

struct WhisperDecoder {
  nn::Embedding embed_tokens;
  nn::Embedding embed_positions;
  std::vector<WhisperDecoderLayer> layers;
  nn::LayerNorm layer_norm;
};

struct WhisperModel {
  WhisperEncoder encoder;
  WhisperDecoder decoder;
};

struct Whisper {
  WhisperModel model;
  nn::Linear proj_out;

  using Cache = std::vector<WhisperDecoderLayer::Seen>;

  /// Of F32 [batch, bins, frames]: what the decoder looks at again and again.
  Cache listen(const Tensor& sound) const {
    const Tensor heard = model.encoder.forward(sound);
    Cache cache;
    for (const WhisperDecoderLayer& layer : model.decoder.layers)
      cache.push_back({.sound = layer.encoder_attn.look(heard)});
    return cache;
  }

  /// I64 [batch, tokens], which follow those the cache has seen → [batch, tokens, vocabulary].
  Tensor forward(const Tensor& tokens, Cache& cache) const {
    const WhisperDecoder& decoder = model.decoder;
    const std::int64_t before = cache.empty() ? 0 : cache.front().text.length();
    Tensor x = decoder.embed_tokens(tokens) +
               decoder.embed_positions(ballast::arange(before, before + tokens.size(1)));
    for (std::size_t i = 0; i < cache.size(); ++i) x = decoder.layers[i].forward(x, cache[i]);
    return proj_out(decoder.layer_norm(x));
  }

  static Whisper make(const WhisperConfig& config) {
    require_type(config.model_type, "whisper");
    require(config.activation_function == "gelu", "whisper", "activation_function");
    require(!config.scale_embedding, "whisper", "scale_embedding");
    const std::int64_t size = config.d_model;
    const WhisperEncoderLayer hears{.self_attn = WhisperAttention::make(size, config.encoder_attention_heads),
                                    .self_attn_layer_norm{size},
                                    .fc1{size, config.encoder_ffn_dim},
                                    .fc2{config.encoder_ffn_dim, size},
                                    .final_layer_norm{size}};
    const WhisperDecoderLayer writes{
        .self_attn = WhisperAttention::make(size, config.decoder_attention_heads),
        .self_attn_layer_norm{size},
        .encoder_attn = WhisperAttention::make(size, config.decoder_attention_heads),
        .encoder_attn_layer_norm{size},
        .fc1{size, config.decoder_ffn_dim},
        .fc2{config.decoder_ffn_dim, size},
        .final_layer_norm{size}};
    return {.model{.encoder{.conv1{config.num_mel_bins, size, 3, {.padding = 1}},
                            .conv2{size, size, 3, {.stride = 2, .padding = 1}},
                            .embed_positions{config.max_source_positions, size},
                            .layers{static_cast<std::size_t>(config.encoder_layers), hears},
                            .layer_norm{size}},
                   .decoder{.embed_tokens{config.vocab_size, size},
                            .embed_positions{config.max_target_positions, size},
                            .layers{static_cast<std::size_t>(config.decoder_layers), writes},
                            .layer_norm{size}}},
            .proj_out{size, config.vocab_size, {.bias = false}}};
  }

  static ballast::LoadOptions load_options() {
    return {.rules = {ballast::rules::Drop{R"(^proj_out\.weight$)"},
                      ballast::rules::Alias{R"(^model\.decoder\.embed_tokens\.weight$)", "proj_out.weight"}},
            .dtype = ballast::Precision::full,
            .unused = ballast::OnUnused::error};
  }
};

}  // namespace models
