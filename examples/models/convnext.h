// SPDX-License-Identifier: Apache-2.0
// ConvNeXt of any size under the names Hugging Face gives it: a convolutional network with the manners of a
// transformer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ballast/load.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "checks.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

/// As in config.json; how many classes there are is seen in the weights.
struct ConvNextConfig {
  std::string model_type;
  std::int64_t num_channels = 0;
  std::int64_t patch_size = 0;
  std::vector<std::int64_t> hidden_sizes;
  std::vector<std::int64_t> depths;
  std::string hidden_act;
  double layer_norm_eps = 0;
};

/// A layer norm over the channels of [batch, channels, height, width].
struct ChannelNorm : nn::LayerNorm {
  using nn::LayerNorm::LayerNorm;

  Tensor forward(const Tensor& x) const {
    return nn::LayerNorm::forward(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
  }
};

struct ConvNextEmbeddings {
  nn::Conv2d patch_embeddings;
  ChannelNorm layernorm;
};

struct ConvNextLayer {
  Tensor layer_scale_parameter;
  nn::Conv2d dwconv;
  nn::LayerNorm layernorm;
  nn::Linear pwconv1;
  nn::Linear pwconv2;

  Tensor forward(const Tensor& x) const {
    const Tensor wide = pwconv1(layernorm(dwconv(x).permute({0, 2, 3, 1})), ballast::Activation::Kind::gelu);
    return x + (pwconv2(wide) * layer_scale_parameter).permute({0, 3, 1, 2});
  }

  static ConvNextLayer make(std::int64_t size) {
    return {.layer_scale_parameter{ballast::DType::f32, {size}},
            .dwconv{size, size, 7, {.padding = 3, .groups = size}},
            .layernorm{size, {.eps = 1e-6}},
            .pwconv1{size, 4 * size},
            .pwconv2{4 * size, size}};
  }
};

struct ConvNextStage {
  std::optional<nn::Sequential<ChannelNorm, nn::Conv2d>> downsampling_layer;  // not in the first stage
  std::vector<ConvNextLayer> layers;

  Tensor forward(Tensor x) const {
    if (downsampling_layer) x = downsampling_layer->forward(x);
    for (const ConvNextLayer& layer : layers) x = layer.forward(x);
    return x;
  }
};

struct ConvNextEncoder {
  std::vector<ConvNextStage> stages;
};

struct ConvNextModel {
  ConvNextEmbeddings embeddings;
  ConvNextEncoder encoder;
  nn::LayerNorm layernorm;

  /// [batch, channels, height, width] → [batch, size]
  Tensor forward(const Tensor& images) const {
    Tensor x = embeddings.layernorm.forward(embeddings.patch_embeddings(images));
    for (const ConvNextStage& stage : encoder.stages) x = stage.forward(x);
    return layernorm(ballast::mean(x, {2, 3}));
  }
};

struct ConvNext {
  ConvNextModel convnext;
  std::optional<nn::Linear> classifier;

  Tensor forward(const Tensor& images) const { return classifier.value()(convnext.forward(images)); }

  static ConvNext make(const ConvNextConfig& config) {
    require_type(config.model_type, "convnext");
    require(config.hidden_act == "gelu", "convnext", "hidden_act " + ballast::quoted(config.hidden_act));
    require(config.hidden_sizes.size() == config.depths.size() && !config.depths.empty(), "convnext",
            "hidden_sizes and depths of other lengths");
    const std::int64_t first = config.hidden_sizes.front();
    const std::int64_t patch = config.patch_size;
    ConvNext net{
        .convnext{.embeddings{{config.num_channels, first, patch, {.stride = patch}}, {first, {.eps = 1e-6}}},
                  .encoder = {},
                  .layernorm{config.hidden_sizes.back(), {.eps = config.layer_norm_eps}}},
        .classifier = {}};
    for (std::size_t i = 0; i < config.depths.size(); ++i) {
      const std::int64_t size = config.hidden_sizes[i];
      ConvNextStage& stage = net.convnext.encoder.stages.emplace_back();
      stage.layers.assign(static_cast<std::size_t>(config.depths[i]), ConvNextLayer::make(size));
      if (i == 0) continue;
      const std::int64_t before = config.hidden_sizes[i - 1];
      stage.downsampling_layer.emplace(ChannelNorm{before, {.eps = 1e-6}},
                                       nn::Conv2d{before, size, 2, {.stride = 2}});
    }
    return net;
  }
};

}  // namespace models
