// SPDX-License-Identifier: Apache-2.0
// torchvision's resnet18 and resnet50, by hand: their state dicts load with nothing missing and nothing left
// over.
#pragma once

#include <optional>
#include <vector>

#include "ballast/nn.h"
#include "ballast/ops.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Activation;
using ballast::Tensor;

using Downsample = nn::Sequential<nn::Conv2d, nn::BatchNorm2d>;

/// Two 3x3 convolutions: the block of resnet18.
struct BasicBlock {
  static constexpr std::int64_t expansion = 1;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  std::optional<Downsample> downsample;

  Tensor forward(const Tensor& x) const {
    const Tensor mixed = nn::conv_norm(conv1, bn1, x, Activation::Kind::relu);
    return ballast::add(nn::conv_norm(conv2, bn2, mixed), downsample ? downsample->forward(x) : x,
                        Activation::Kind::relu);
  }

  static BasicBlock make(std::int64_t in, std::int64_t width, std::int64_t stride) {
    return {.conv1{in, width, 3, {.stride = stride, .padding = 1, .bias = false}},
            .bn1{width},
            .conv2{width, width, 3, {.padding = 1, .bias = false}},
            .bn2{width},
            .downsample = {}};
  }
};

/// Down to `width` channels, a 3x3 convolution, up to four times as many: the block of resnet50.
struct Bottleneck {
  static constexpr std::int64_t expansion = 4;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  std::optional<Downsample> downsample;

  Tensor forward(const Tensor& x) const {
    const Tensor narrow = nn::conv_norm(conv1, bn1, x, Activation::Kind::relu);
    const Tensor mixed = nn::conv_norm(conv2, bn2, narrow, Activation::Kind::relu);
    return ballast::add(nn::conv_norm(conv3, bn3, mixed), downsample ? downsample->forward(x) : x,
                        Activation::Kind::relu);
  }

  static Bottleneck make(std::int64_t in, std::int64_t width, std::int64_t stride) {
    return {.conv1{in, width, 1, {.bias = false}},
            .bn1{width},
            .conv2{width, width, 3, {.stride = stride, .padding = 1, .bias = false}},
            .bn2{width},
            .conv3{width, width * expansion, 1, {.bias = false}},
            .bn3{width * expansion},
            .downsample = {}};
  }
};

/// `count` blocks that end in width * expansion channels; the first one takes the stride.
template <class Block>
std::vector<Block> resnet_stage(std::int64_t in, std::int64_t width, std::int64_t count,
                                std::int64_t stride) {
  const std::int64_t out = width * Block::expansion;
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < count; ++i)
    blocks.push_back(Block::make(i == 0 ? in : out, width, i == 0 ? stride : 1));
  if (in != out || stride != 1)
    blocks.front().downsample.emplace(nn::Conv2d{in, out, 1, {.stride = stride, .bias = false}},
                                      nn::BatchNorm2d{out});
  return blocks;
}

template <class Block, int Count1, int Count2, int Count3, int Count4>
struct ResNet {
  static constexpr std::int64_t e = Block::expansion;
  nn::Conv2d conv1{3, 64, 7, {.stride = 2, .padding = 3, .bias = false}};
  nn::BatchNorm2d bn1{64};
  nn::MaxPool2d maxpool{3, {.stride = 2, .padding = 1}};
  std::vector<Block> layer1 = resnet_stage<Block>(64, 64, Count1, 1);
  std::vector<Block> layer2 = resnet_stage<Block>(64 * e, 128, Count2, 2);
  std::vector<Block> layer3 = resnet_stage<Block>(128 * e, 256, Count3, 2);
  std::vector<Block> layer4 = resnet_stage<Block>(256 * e, 512, Count4, 2);
  nn::AdaptiveAvgPool2d avgpool{1};
  nn::Linear fc{512 * e, 1000};

  /// [batch, 3, height, width] → [batch, 1000].
  Tensor forward(const Tensor& images) const {
    Tensor x = maxpool.forward(nn::conv_norm(conv1, bn1, images, Activation::Kind::relu));
    for (const auto* stage : {&layer1, &layer2, &layer3, &layer4}) {
      for (const Block& block : *stage) x = block.forward(x);
    }
    return fc.forward(ballast::flatten(avgpool.forward(x)));
  }
};

using ResNet18 = ResNet<BasicBlock, 2, 2, 2, 2>;
using ResNet50 = ResNet<Bottleneck, 3, 4, 6, 3>;

}  // namespace models
