// SPDX-License-Identifier: Apache-2.0
// EfficientNet of any size under the names Hugging Face gives it: inverted bottlenecks with squeeze and
// excitation, padded as in Keras.
#pragma once

#include <algorithm>
#include <cmath>
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
struct EfficientNetConfig {
  std::string model_type;
  std::int64_t num_channels = 0;
  double width_coefficient = 0;
  double depth_coefficient = 0;
  std::int64_t depth_divisor = 0;
  std::vector<std::int64_t> kernel_sizes;
  std::vector<std::int64_t> in_channels;
  std::vector<std::int64_t> out_channels;
  std::vector<std::int64_t> depthwise_padding;  // blocks that are padded on both sides alike
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> num_block_repeats;
  std::vector<std::int64_t> expand_ratios;
  double squeeze_expansion_ratio = 0;
  std::string hidden_act;
  std::string pooling_type;
  double batch_norm_eps = 0;

  /// The width of a layer that has `channels` in the smallest network.
  [[nodiscard]] std::int64_t scaled(std::int64_t channels) const {
    const double wanted = static_cast<double>(channels) * width_coefficient;
    const double half = static_cast<double>(depth_divisor) / 2;
    const std::int64_t whole = static_cast<std::int64_t>(wanted + half) / depth_divisor * depth_divisor;
    const std::int64_t width = std::max(depth_divisor, whole);
    return static_cast<double>(width) < 0.9 * wanted ? width + depth_divisor : width;
  }
};

inline constexpr auto kSwish = ballast::Activation::Kind::silu;

struct EfficientNetEmbeddings {
  nn::Conv2d convolution;
  nn::BatchNorm2d batchnorm;

  Tensor forward(const Tensor& images) const {
    return nn::conv_norm(convolution, batchnorm, ballast::pad(images, {0, 1, 0, 1}), kSwish);
  }
};

struct EfficientNetExpansion {
  nn::Conv2d expand_conv;
  nn::BatchNorm2d expand_bn;
};

struct EfficientNetDepthwise {
  ballast::Dims padding;
  nn::Conv2d depthwise_conv;
  nn::BatchNorm2d depthwise_norm;

  Tensor forward(const Tensor& x) const {
    return nn::conv_norm(depthwise_conv, depthwise_norm, ballast::pad(x, padding), kSwish);
  }
};

struct SqueezeExcite {
  nn::Conv2d reduce;
  nn::Conv2d expand;

  Tensor forward(const Tensor& x) const {
    const Tensor whole = ballast::mean(x, {2, 3}, true);
    return x * expand(reduce(whole, kSwish), ballast::Activation::Kind::sigmoid);
  }
};

struct EfficientNetProjection {
  nn::Conv2d project_conv;
  nn::BatchNorm2d project_bn;
};

struct EfficientNetBlock {
  bool residual;
  std::optional<EfficientNetExpansion> expansion;
  EfficientNetDepthwise depthwise_conv;
  SqueezeExcite squeeze_excite;
  EfficientNetProjection projection;

  Tensor forward(const Tensor& x) const {
    const Tensor wide =
        expansion ? nn::conv_norm(expansion->expand_conv, expansion->expand_bn, x, kSwish) : x;
    const Tensor weighed = squeeze_excite.forward(depthwise_conv.forward(wide));
    const Tensor out = nn::conv_norm(projection.project_conv, projection.project_bn, weighed);
    return residual ? out + x : out;
  }
};

struct EfficientNetEncoder {
  std::vector<EfficientNetBlock> blocks;
  nn::Conv2d top_conv;
  nn::BatchNorm2d top_bn;
};

struct EfficientNetModel {
  EfficientNetEmbeddings embeddings;
  EfficientNetEncoder encoder;

  /// [batch, channels, height, width] → [batch, size]
  Tensor forward(const Tensor& images) const {
    Tensor x = embeddings.forward(images);
    for (const EfficientNetBlock& block : encoder.blocks) x = block.forward(x);
    return ballast::mean(nn::conv_norm(encoder.top_conv, encoder.top_bn, x, kSwish), {2, 3});
  }
};

/// A block of stage `stage`, the `repeat`-th of it and the `number`-th of all.
inline EfficientNetBlock efficientnet_block(const EfficientNetConfig& config, std::size_t stage,
                                            std::int64_t repeat, std::int64_t number) {
  const std::int64_t out = config.scaled(config.out_channels.at(stage));
  const std::int64_t in = repeat == 0 ? config.scaled(config.in_channels.at(stage)) : out;
  const std::int64_t stride = repeat == 0 ? config.strides.at(stage) : 1;
  const std::int64_t kernel = config.kernel_sizes.at(stage);
  const std::int64_t wide = in * config.expand_ratios.at(stage);
  const auto squeezed = static_cast<std::int64_t>(static_cast<double>(in) * config.squeeze_expansion_ratio);
  const std::int64_t reduced = std::max<std::int64_t>(1, squeezed);
  const bool alike =
      stride == 1 || std::ranges::find(config.depthwise_padding, number) != config.depthwise_padding.end();
  const std::int64_t after = kernel / 2;
  const std::int64_t before = alike ? after : after - 1;
  const nn::BatchNormOptions norm{.eps = config.batch_norm_eps};
  EfficientNetBlock block{
      .residual = repeat > 0 && stride == 1,
      .expansion = {},
      .depthwise_conv{.padding = {before, after, before, after},
                      .depthwise_conv{wide, wide, kernel, {.stride = stride, .groups = wide, .bias = false}},
                      .depthwise_norm{wide, norm}},
      .squeeze_excite{{wide, reduced, 1}, {reduced, wide, 1}},
      .projection{{wide, out, 1, {.bias = false}}, {out, norm}}};
  if (wide != in) block.expansion = EfficientNetExpansion{{in, wide, 1, {.bias = false}}, {wide, norm}};
  return block;
}

struct EfficientNet {
  EfficientNetModel efficientnet;
  std::optional<nn::Linear> classifier;

  Tensor forward(const Tensor& images) const { return classifier.value()(efficientnet.forward(images)); }

  static EfficientNet make(const EfficientNetConfig& config) {
    require_type(config.model_type, "efficientnet");
    require(config.width_coefficient > 0 && config.width_coefficient < 64 && config.depth_coefficient > 0 &&
                config.depth_coefficient < 64,
            "efficientnet", "width_coefficient or depth_coefficient");
    require(config.hidden_act == "swish" || config.hidden_act == "silu", "efficientnet",
            "hidden_act " + ballast::quoted(config.hidden_act));
    require(config.pooling_type == "mean", "efficientnet",
            "pooling_type " + ballast::quoted(config.pooling_type));
    const std::int64_t first = config.scaled(32);
    const std::int64_t last = config.scaled(config.out_channels.back());
    const std::int64_t top = config.scaled(1280);
    const nn::BatchNormOptions norm{.eps = config.batch_norm_eps};
    EfficientNet net{
        .efficientnet{
            .embeddings{{config.num_channels, first, 3, {.stride = 2, .bias = false}}, {first, norm}},
            .encoder{.blocks = {}, .top_conv{last, top, 1, {.bias = false}}, .top_bn{top, norm}}},
        .classifier = {}};
    std::int64_t number = 0;
    for (std::size_t stage = 0; stage < config.num_block_repeats.size(); ++stage) {
      const double repeats =
          std::ceil(config.depth_coefficient * static_cast<double>(config.num_block_repeats[stage]));
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(repeats); ++i)
        net.efficientnet.encoder.blocks.push_back(efficientnet_block(config, stage, i, number++));
    }
    return net;
  }
};

}  // namespace models
