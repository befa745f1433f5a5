// SPDX-License-Identifier: Apache-2.0
// CLIP of any size under the names Hugging Face gives it: pictures and texts become points of one space.
#pragma once

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

/// Files leave out what is as in CLIP ViT-B/32: the values here.
struct ClipTextConfig {
  std::optional<std::int64_t> hidden_size = 512;
  std::optional<std::int64_t> intermediate_size = 2048;
  std::optional<std::int64_t> num_hidden_layers = 12;
  std::optional<std::int64_t> num_attention_heads = 8;
  std::optional<std::string> hidden_act = "quick_gelu";
  std::optional<double> layer_norm_eps = 1e-5;
  std::optional<std::int64_t> vocab_size = 49408;
  std::optional<std::int64_t> max_position_embeddings = 77;
  std::optional<std::int64_t> eos_token_id = 49407;
};

struct ClipVisionConfig {
  std::optional<std::int64_t> hidden_size = 768;
  std::optional<std::int64_t> intermediate_size = 3072;
  std::optional<std::int64_t> num_hidden_layers = 12;
  std::optional<std::int64_t> num_attention_heads = 12;
  std::optional<std::string> hidden_act = "quick_gelu";
  std::optional<double> layer_norm_eps = 1e-5;
  std::optional<std::int64_t> num_channels = 3;
  std::optional<std::int64_t> image_size = 224;
  std::optional<std::int64_t> patch_size = 32;
};

/// As in config.json.
struct ClipConfig {
  std::string model_type;
  ClipTextConfig text_config;
  ClipVisionConfig vision_config;
  std::optional<std::int64_t> projection_dim = 512;
};

struct ClipAttention {
  std::int64_t heads;
  nn::Linear q_proj;
  nn::Linear k_proj;
  nn::Linear v_proj;
  nn::Linear out_proj;

  Tensor forward(const Tensor& x, bool causal) const {
    return out_proj(join_heads(
        ballast::scaled_dot_product_attention(split_heads(q_proj(x), heads), split_heads(k_proj(x), heads),
                                              split_heads(v_proj(x), heads), {.causal = causal})));
  }
};

struct ClipMlp {
  bool quick;  // an approximation of GELU, by a sigmoid
  nn::Linear fc1;
  nn::Linear fc2;

  Tensor forward(const Tensor& x) const {
    const Tensor inner = fc1(x);
    return fc2(quick ? inner * ballast::sigmoid(inner * 1.702) : ballast::gelu(inner));
  }
};

struct ClipLayer {
  nn::LayerNorm layer_norm1;
  ClipAttention self_attn;
  nn::LayerNorm layer_norm2;
  ClipMlp mlp;

  Tensor forward(const Tensor& x, bool causal) const {
    const Tensor attended = x + self_attn.forward(layer_norm1(x), causal);
    return attended + mlp.forward(layer_norm2(attended));
  }
};

struct ClipEncoder {
  std::vector<ClipLayer> layers;

  Tensor forward(Tensor x, bool causal) const {
    for (const ClipLayer& layer : layers) x = layer.forward(x, causal);
    return x;
  }

  static ClipEncoder make(const auto& config) {
    const std::string act = config.hidden_act.value();
    require(act == "quick_gelu" || act == "gelu", "clip", "hidden_act " + ballast::quoted(act));
    const std::int64_t size = config.hidden_size.value();
    const std::int64_t inner = config.intermediate_size.value();
    const nn::LayerNorm norm{size, {.eps = config.layer_norm_eps.value()}};
    const ClipLayer layer{
        .layer_norm1 = norm,
        .self_attn{
            config.num_attention_heads.value(), {size, size}, {size, size}, {size, size}, {size, size}},
        .layer_norm2 = norm,
        .mlp{act == "quick_gelu", {size, inner}, {inner, size}}};
    return {{static_cast<std::size_t>(config.num_hidden_layers.value()), layer}};
  }
};

struct ClipTextEmbeddings {
  nn::Embedding token_embedding;
  nn::Embedding position_embedding;
};

struct ClipText {
  std::int64_t end;  // the token whose place says what the text is about
  ClipTextEmbeddings embeddings;
  ClipEncoder encoder;
  nn::LayerNorm final_layer_norm;

  /// I64 [batch, tokens] → [batch, size]
  Tensor forward(const Tensor& tokens) const {
    const Tensor x = embeddings.token_embedding(tokens) +
                     embeddings.position_embedding(ballast::arange(0, tokens.size(1)));
    const Tensor read = final_layer_norm(encoder.forward(x, true));
    // The first files called it 2 and had it as the largest of all tokens.
    const Tensor place = ballast::argmax(end == 2 ? tokens : (tokens == end).to(ballast::DType::i64), 1);
    const Tensor index = place.reshape({-1, 1, 1}).expand({read.size(0), 1, read.size(2)});
    return ballast::gather(read, 1, index).squeeze(1);
  }
};

struct ClipVisionEmbeddings {
  Tensor class_embedding;
  nn::Conv2d patch_embedding;
  nn::Embedding position_embedding;

  Tensor forward(const Tensor& images) const {
    const Tensor patches = ballast::flatten(patch_embedding(images), 2).permute({0, 2, 1});
    const Tensor first = class_embedding.expand({images.size(0), 1, patches.size(2)});
    return ballast::concat({first, patches}, 1) + position_embedding.weight;
  }
};

struct ClipVision {
  ClipVisionEmbeddings embeddings;
  nn::LayerNorm pre_layrnorm;  // so it is spelled
  ClipEncoder encoder;
  nn::LayerNorm post_layernorm;

  /// [batch, channels, height, width] → [batch, size]
  Tensor forward(const Tensor& images) const {
    const Tensor x = encoder.forward(pre_layrnorm(embeddings.forward(images)), false);
    return post_layernorm(x.index({ballast::Slice{}, 0}));
  }
};

struct Clip {
  ClipText text_model;
  ClipVision vision_model;
  nn::Linear text_projection;
  nn::Linear visual_projection;
  Tensor logit_scale;

  /// Points of length 1, [batch, projection].
  Tensor embed_text(const Tensor& tokens) const { return unit(text_projection(text_model.forward(tokens))); }

  Tensor embed_images(const Tensor& images) const {
    return unit(visual_projection(vision_model.forward(images)));
  }

  /// How well each picture and text go together: [images, texts].
  Tensor forward(const Tensor& images, const Tensor& tokens) const {
    return ballast::matmul(embed_images(images), embed_text(tokens).t()) * ballast::exp(logit_scale);
  }

  static Tensor unit(const Tensor& x) { return x / ballast::norm(x, 2, -1, true); }

  static Clip make(const ClipConfig& config) {
    require_type(config.model_type, "clip");
    const ClipTextConfig& text = config.text_config;
    const ClipVisionConfig& vision = config.vision_config;
    const std::int64_t read = text.hidden_size.value();
    const std::int64_t seen = vision.hidden_size.value();
    const std::int64_t side = vision.image_size.value() / vision.patch_size.value();
    const nn::LayerNorm vision_norm{seen, {.eps = vision.layer_norm_eps.value()}};
    const std::int64_t patch = vision.patch_size.value();
    return {.text_model{
                .end = text.eos_token_id.value(),
                .embeddings{{text.vocab_size.value(), read}, {text.max_position_embeddings.value(), read}},
                .encoder = ClipEncoder::make(text),
                .final_layer_norm{read, {.eps = text.layer_norm_eps.value()}}},
            .vision_model{
                .embeddings{.class_embedding{ballast::DType::f32, {seen}},
                            .patch_embedding{
                                vision.num_channels.value(), seen, patch, {.stride = patch, .bias = false}},
                            .position_embedding{side * side + 1, seen}},
                .pre_layrnorm = vision_norm,
                .encoder = ClipEncoder::make(vision),
                .post_layernorm = vision_norm},
            .text_projection{read, config.projection_dim.value(), {.bias = false}},
            .visual_projection{seen, config.projection_dim.value(), {.bias = false}},
            .logit_scale{ballast::DType::f32, {}}};
  }

  /// Old files number the positions in a buffer.
  static ballast::LoadOptions load_options() {
    return {.rules = {ballast::rules::Drop{R"(\.embeddings\.position_ids$)"}},
            .dtype = ballast::Precision::full,
            .unused = ballast::OnUnused::error};
  }
};

}  // namespace models
