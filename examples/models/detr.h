// SPDX-License-Identifier: Apache-2.0
// DETR under the names Hugging Face gives it: a ResNet, and a transformer whose queries become objects and
// where they are.
#pragma once

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
#include "resnet.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

/// ResNet-50 unless the file says otherwise.
struct DetrBackboneConfig {
  std::optional<std::string> backbone = "resnet50";
  std::optional<std::int64_t> embedding_size = 64;
  std::optional<std::vector<std::int64_t>> hidden_sizes = {{256, 512, 1024, 2048}};
  std::optional<std::vector<std::int64_t>> depths = {{3, 4, 6, 3}};
  std::optional<std::string> layer_type = "bottleneck";
  std::optional<std::string> hidden_act = "relu";
  std::optional<bool> downsample_in_first_stage = false;
  std::optional<bool> downsample_in_bottleneck = false;
};

/// As in config.json; how many classes there are is seen in the weights.
struct DetrConfig {
  std::string model_type;
  std::int64_t num_queries = 0;
  std::int64_t d_model = 0;
  std::int64_t encoder_layers = 0;
  std::int64_t encoder_attention_heads = 0;
  std::int64_t encoder_ffn_dim = 0;
  std::int64_t decoder_layers = 0;
  std::int64_t decoder_attention_heads = 0;
  std::int64_t decoder_ffn_dim = 0;
  std::string activation_function;
  std::string position_embedding_type;
  std::optional<bool> dilation = false;
  std::optional<bool> auxiliary_loss = false;
  std::optional<std::string> backbone = "resnet50";
  std::optional<DetrBackboneConfig> backbone_config;
};

struct DetrResNet {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<Bottleneck> layer1;
  std::vector<Bottleneck> layer2;
  std::vector<Bottleneck> layer3;
  std::vector<Bottleneck> layer4;

  /// [batch, 3, height, width] → [batch, channels, height / 32, width / 32], rounded up.
  Tensor forward(const Tensor& images) const {
    static const nn::MaxPool2d pool{3, {.stride = 2, .padding = 1}};
    Tensor x = pool(nn::conv_norm(conv1, bn1, images, Activation::Kind::relu));
    for (const auto* stage : {&layer1, &layer2, &layer3, &layer4})
      for (const Bottleneck& block : *stage) x = block.forward(x);
    return x;
  }

  static DetrResNet make(const DetrBackboneConfig& config) {
    const std::vector<std::int64_t> sizes = config.hidden_sizes.value();
    std::vector<std::int64_t> depths = config.depths.value();
    if (config.backbone == "resnet101") depths = {3, 4, 23, 3};
    require(config.backbone == "resnet50" || config.backbone == "resnet101", "detr",
            "backbone " + ballast::quoted(config.backbone.value_or("none")));
    require(sizes.size() == 4 && depths.size() == 4 && config.layer_type == "bottleneck" &&
                config.hidden_act == "relu" && !config.downsample_in_first_stage.value_or(false) &&
                !config.downsample_in_bottleneck.value_or(false),
            "detr", "a backbone that is no ResNet-50");
    const std::int64_t first = config.embedding_size.value();
    const auto stage = [&](std::size_t i) {
      return resnet_stage<Bottleneck>(i == 0 ? first : sizes[i - 1], sizes[i] / 4, depths[i], i == 0 ? 1 : 2);
    };
    return {.conv1{3, first, 7, {.stride = 2, .padding = 3, .bias = false}},
            .bn1{first},
            .layer1 = stage(0),
            .layer2 = stage(1),
            .layer3 = stage(2),
            .layer4 = stage(3)};
  }
};

struct DetrConvEncoder {
  DetrResNet model;
};

struct DetrBackbone {
  DetrConvEncoder conv_encoder;
};

struct DetrAttention {
  std::int64_t heads;
  nn::Linear q_proj;
  nn::Linear k_proj;
  nn::Linear v_proj;
  nn::Linear out_proj;

  Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                 const Tensor& mask = {}) const {
    return out_proj(join_heads(ballast::scaled_dot_product_attention(
        split_heads(q_proj(queries), heads), split_heads(k_proj(keys), heads),
        split_heads(v_proj(values), heads), {.mask = mask})));
  }

  static DetrAttention make(std::int64_t size, std::int64_t heads) {
    return {heads, {size, size}, {size, size}, {size, size}, {size, size}};
  }
};

/// What is looked at: features of places, where they are, and which of them are picture: [batch, places,
/// size] twice, BOOL [batch, 1, 1, places].
struct DetrScene {
  Tensor features;
  Tensor places;
  Tensor mask;
};

struct DetrEncoderLayer {
  DetrAttention self_attn;
  nn::LayerNorm self_attn_layer_norm;
  nn::Linear fc1;
  nn::Linear fc2;
  nn::LayerNorm final_layer_norm;

  Tensor forward(const DetrScene& scene) const {
    const Tensor placed = scene.features + scene.places;
    const Tensor attended =
        self_attn_layer_norm(scene.features + self_attn.forward(placed, placed, scene.features, scene.mask));
    return final_layer_norm(attended + fc2(fc1(attended, Activation::Kind::relu)));
  }
};

struct DetrDecoderLayer {
  DetrAttention self_attn;
  nn::LayerNorm self_attn_layer_norm;
  DetrAttention encoder_attn;
  nn::LayerNorm encoder_attn_layer_norm;
  nn::Linear fc1;
  nn::Linear fc2;
  nn::LayerNorm final_layer_norm;

  Tensor forward(const Tensor& x, const Tensor& queries, const DetrScene& scene) const {
    const Tensor asking = x + queries;
    const Tensor agreed = self_attn_layer_norm(x + self_attn.forward(asking, asking, x));
    const Tensor found =
        encoder_attn_layer_norm(agreed + encoder_attn.forward(agreed + queries, scene.features + scene.places,
                                                              scene.features, scene.mask));
    return final_layer_norm(found + fc2(fc1(found, Activation::Kind::relu)));
  }
};

struct DetrEncoder {
  std::vector<DetrEncoderLayer> layers;
};

struct DetrDecoder {
  std::vector<DetrDecoderLayer> layers;
  nn::LayerNorm layernorm;
};

/// A coordinate of every place of BOOL [batch, height, width], counted along `dim` where there is picture, as
/// sines and cosines of `size` frequencies.
inline Tensor detr_waves(const Tensor& mask, std::int64_t dim, std::int64_t size) {
  const Tensor count = ballast::cumsum(mask.to(ballast::DType::f32), dim);
  const Tensor last = count.narrow(dim, count.size(dim) - 1, 1);
  const Tensor place = (count / (last + 1e-6) * (2 * std::numbers::pi)).unsqueeze(-1);
  const Tensor pairs = ballast::arange(0, size / 2).to(ballast::DType::f32) * 2 / size;
  const Tensor angles = place / ballast::pow(10000.0, pairs);
  return ballast::flatten(ballast::stack({ballast::sin(angles), ballast::cos(angles)}, 4), 3);
}

struct DetrModel {
  DetrBackbone backbone;
  nn::Conv2d input_projection;
  nn::Embedding query_position_embeddings;
  DetrEncoder encoder;
  DetrDecoder decoder;

  /// images [batch, 3, height, width], pixels BOOL [batch, height, width]: where there is picture → [batch,
  /// queries, size]
  Tensor forward(const Tensor& images, const Tensor& pixels) const {
    const Tensor seen = input_projection(backbone.conv_encoder.model.forward(images));
    const std::int64_t batch = images.size(0);
    const std::int64_t size = seen.size(1);
    const Tensor small =
        ballast::resize(pixels.to(ballast::DType::f32).unsqueeze(1), {.size = {seen.size(2), seen.size(3)}});
    const Tensor mask = small.squeeze(1) > 0;
    const Tensor waves = ballast::concat({detr_waves(mask, 1, size / 2), detr_waves(mask, 2, size / 2)}, 3);
    DetrScene scene{.features = ballast::flatten(seen, 2).permute({0, 2, 1}),
                    .places = waves.reshape({batch, -1, size}),
                    .mask = mask.reshape({batch, 1, 1, -1})};
    for (const DetrEncoderLayer& layer : encoder.layers) scene.features = layer.forward(scene);
    const Tensor queries =
        query_position_embeddings.weight.expand({batch, query_position_embeddings.num_embeddings, size});
    Tensor x = ballast::zeros(queries.shape());
    for (const DetrDecoderLayer& layer : decoder.layers) x = layer.forward(x, queries, scene);
    return decoder.layernorm(x);
  }
};

struct DetrBoxes {
  std::vector<nn::Linear> layers;

  Tensor forward(const Tensor& x) const {
    constexpr auto relu = Activation::Kind::relu;
    return layers[2](layers[1](layers[0](x, relu), relu), Activation::Kind::sigmoid);
  }
};

struct Detr {
  DetrModel model;
  std::optional<nn::Linear> class_labels_classifier;
  DetrBoxes bbox_predictor;

  struct Objects {
    Tensor logits;  ///< [batch, queries, classes and none]
    Tensor boxes;   ///< [batch, queries, 4]: middle and size, from 0 to 1
  };

  Objects forward(const Tensor& images, const Tensor& pixels) const {
    const Tensor found = model.forward(images, pixels);
    return {class_labels_classifier.value()(found), bbox_predictor.forward(found)};
  }

  static Detr make(const DetrConfig& config);

  /// Later versions of transformers have other names, and ResNets of their own.
  static ballast::LoadOptions load_options() {
    ballast::LoadOptions options{
        .rename = {{R"(^model\.backbone\.model\.)", "model.backbone.conv_encoder.model."},
                   {R"(\.o_proj\.)", ".out_proj."},
                   {R"(\.mlp\.(fc[12])\.)", ".$1."},
                   {R"(\.embedder\.embedder\.convolution\.)", ".conv1."},
                   {R"(\.embedder\.embedder\.normalization\.)", ".bn1."}},
        .dtype = ballast::Precision::full,
        .unused = ballast::OnUnused::error};
    for (int i = 0; i < 4; ++i)
      options.rename.push_back({R"(\.encoder\.stages\.)" + std::to_string(i) + R"(\.layers\.)",
                                ".layer" + std::to_string(i + 1) + "."});
    for (int i = 0; i < 3; ++i) {
      const std::string layer = R"((\.layer\d\.\d+)\.layer\.)" + std::to_string(i);
      options.rename.push_back({layer + R"(\.convolution\.)", "$1.conv" + std::to_string(i + 1) + "."});
      options.rename.push_back({layer + R"(\.normalization\.)", "$1.bn" + std::to_string(i + 1) + "."});
    }
    options.rename.push_back({R"(\.shortcut\.convolution\.)", ".downsample.0."});
    options.rename.push_back({R"(\.shortcut\.normalization\.)", ".downsample.1."});
    return options;
  }
};

inline Detr Detr::make(const DetrConfig& config) {
  require_type(config.model_type, "detr");
  require(config.activation_function == "relu", "detr", "activation_function");
  require(config.position_embedding_type == "sine", "detr", "position_embedding_type");
  require(!config.dilation.value_or(false) && !config.auxiliary_loss.value_or(false), "detr",
          "dilation or auxiliary_loss");
  const std::int64_t size = config.d_model;
  const DetrBackboneConfig backbone =
      config.backbone_config.value_or(DetrBackboneConfig{.backbone = config.backbone});
  const DetrEncoderLayer sees{.self_attn = DetrAttention::make(size, config.encoder_attention_heads),
                              .self_attn_layer_norm{size},
                              .fc1{size, config.encoder_ffn_dim},
                              .fc2{config.encoder_ffn_dim, size},
                              .final_layer_norm{size}};
  const DetrDecoderLayer finds{.self_attn = DetrAttention::make(size, config.decoder_attention_heads),
                               .self_attn_layer_norm{size},
                               .encoder_attn = DetrAttention::make(size, config.decoder_attention_heads),
                               .encoder_attn_layer_norm{size},
                               .fc1{size, config.decoder_ffn_dim},
                               .fc2{config.decoder_ffn_dim, size},
                               .final_layer_norm{size}};
  return {.model{.backbone{{DetrResNet::make(backbone)}},
                 .input_projection{backbone.hidden_sizes.value().back(), size, 1},
                 .query_position_embeddings{config.num_queries, size},
                 .encoder{{static_cast<std::size_t>(config.encoder_layers), sees}},
                 .decoder{{static_cast<std::size_t>(config.decoder_layers), finds}, {size}}},
          .class_labels_classifier = {},
          .bbox_predictor{{{size, size}, {size, size}, {size, 4}}}};
}

}  // namespace models
