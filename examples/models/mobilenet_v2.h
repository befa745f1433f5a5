// SPDX-License-Identifier: Apache-2.0
// torchvision's mobilenet_v2, by hand. Its features are a list of two kinds of things, and so they are here:
// a vector of variants, each holding what stands at its place.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "ballast/nn.h"
#include "ballast/ops.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

using ConvNormRelu6 = nn::Sequential<nn::Conv2d, nn::BatchNorm2d, nn::ReLU6>;

inline ConvNormRelu6 conv_norm_relu6(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                     std::int64_t stride = 1, std::int64_t groups = 1) {
  return {{in, out, kernel, {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}},
          {out},
          {}};
}

/// Wider by a 1x1 convolution, each channel by itself, narrower by a 1x1 convolution; plus the input where
/// the shapes allow it.
struct InvertedResidual {
  using Narrow = nn::Sequential<ConvNormRelu6, nn::Conv2d, nn::BatchNorm2d>;  // nothing to widen
  using Wide = nn::Sequential<ConvNormRelu6, ConvNormRelu6, nn::Conv2d, nn::BatchNorm2d>;
  std::variant<Narrow, Wide> conv;
  bool adds_input;

  Tensor forward(const Tensor& x) const {
    Tensor y = std::visit([&x](const auto& layers) { return layers.forward(x); }, conv);
    return adds_input ? x + std::move(y) : y;
  }

  static InvertedResidual make(std::int64_t in, std::int64_t out, std::int64_t stride,
                               std::int64_t expansion) {
    const std::int64_t wide = in * expansion;
    const ConvNormRelu6 by_channel = conv_norm_relu6(wide, wide, 3, stride, wide);
    const nn::Conv2d narrowing{wide, out, 1, {.bias = false}};
    const bool adds_input = stride == 1 && in == out;
    if (expansion == 1) return {Narrow{by_channel, narrowing, {out}}, adds_input};
    return {Wide{conv_norm_relu6(in, wide, 1), by_channel, narrowing, {out}}, adds_input};
  }
};

struct MobileNetV2 {
  std::vector<std::variant<ConvNormRelu6, InvertedResidual>> features = make_features();
  nn::Sequential<nn::Dropout, nn::Linear> classifier{{0.2}, {1280, 1000}};

  /// [batch, 3, height, width] → [batch, 1000].
  Tensor forward(const Tensor& images) const {
    Tensor x = images;
    for (const auto& feature : features)
      x = std::visit([&x](const auto& layer) { return layer.forward(x); }, feature);
    return classifier.forward(ballast::mean(x, {2, 3}));
  }

  static std::vector<std::variant<ConvNormRelu6, InvertedResidual>> make_features() {
    struct Row {
      std::int64_t expansion, out, count, stride;
    };
    std::vector<std::variant<ConvNormRelu6, InvertedResidual>> all;
    all.emplace_back(conv_norm_relu6(3, 32, 3, 2));
    std::int64_t in = 32;
    for (const Row& row : {Row{1, 16, 1, 1}, Row{6, 24, 2, 2}, Row{6, 32, 3, 2}, Row{6, 64, 4, 2},
                           Row{6, 96, 3, 1}, Row{6, 160, 3, 2}, Row{6, 320, 1, 1}}) {
      for (std::int64_t i = 0; i < row.count; ++i) {
        all.emplace_back(InvertedResidual::make(in, row.out, i == 0 ? row.stride : 1, row.expansion));
        in = row.out;
      }
    }
    all.emplace_back(conv_norm_relu6(320, 1280, 1));
    return all;
  }
};

}  // namespace models
