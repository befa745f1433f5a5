// SPDX-License-Identifier: Apache-2.0
// torchvision's resnet50, by hand: its state dict loads with nothing missing and nothing left over.
#pragma once

#include <optional>
#include <vector>

#include "ballast/nn.h"
#include "ballast/ops.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Activation;
using ballast::Tensor;

struct Bottleneck {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  std::optional<nn::Sequential<nn::Conv2d, nn::BatchNorm2d>> downsample;

  Tensor forward(const Tensor& x) const {
    const Tensor narrow = nn::conv_norm(conv1, bn1, x, Activation::Kind::relu);
    const Tensor mixed = nn::conv_norm(conv2, bn2, narrow, Activation::Kind::relu);
    const Tensor wide = nn::conv_norm(conv3, bn3, mixed);
    return ballast::add(wide, downsample ? downsample->forward(x) : x, Activation::Kind::relu);
  }

  static Bottleneck make(std::int64_t in, std::int64_t width, std::int64_t stride) {
    const std::int64_t out = width * 4;
    Bottleneck block{.conv1{in, width, 1, {.bias = false}},
                     .bn1{width},
                     .conv2{width, width, 3, {.stride = stride, .padding = 1, .bias = false}},
                     .bn2{width},
                     .conv3{width, out, 1, {.bias = false}},
                     .bn3{out},
                     .downsample = {}};
    if (in != out || stride != 1)
      block.downsample.emplace(nn::Conv2d{in, out, 1, {.stride = stride, .bias = false}},
                               nn::BatchNorm2d{out});
    return block;
  }

  static std::vector<Bottleneck> stage(std::int64_t in, std::int64_t width, std::int64_t count,
                                       std::int64_t stride) {
    std::vector<Bottleneck> blocks;
    for (std::int64_t i = 0; i < count; ++i)
      blocks.push_back(make(i == 0 ? in : width * 4, width, i == 0 ? stride : 1));
    return blocks;
  }
};

struct ResNet50 {
  nn::Conv2d conv1{3, 64, 7, {.stride = 2, .padding = 3, .bias = false}};
  nn::BatchNorm2d bn1{64};
  nn::MaxPool2d maxpool{3, {.stride = 2, .padding = 1}};
  std::vector<Bottleneck> layer1 = Bottleneck::stage(64, 64, 3, 1);
  std::vector<Bottleneck> layer2 = Bottleneck::stage(256, 128, 4, 2);
  std::vector<Bottleneck> layer3 = Bottleneck::stage(512, 256, 6, 2);
  std::vector<Bottleneck> layer4 = Bottleneck::stage(1024, 512, 3, 2);
  nn::AdaptiveAvgPool2d avgpool{1};
  nn::Linear fc{2048, 1000};

  Tensor forward(const Tensor& images) const {
    Tensor x = maxpool.forward(nn::conv_norm(conv1, bn1, images, Activation::Kind::relu));
    for (const auto* stage : {&layer1, &layer2, &layer3, &layer4}) {
      for (const Bottleneck& block : *stage) x = block.forward(x);
    }
    return fc.forward(ballast::flatten(avgpool.forward(x)));
  }
};

}  // namespace models
