// SPDX-License-Identifier: Apache-2.0
// The network of make.py as a struct: fields have the names of its parameters.
#pragma once

#include <optional>
#include <vector>

#include "ballast/nn.h"
#include "ballast/ops.h"

namespace nn = ballast::nn;
using ballast::Activation;
using ballast::Tensor;

struct Block {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  std::optional<nn::Sequential<nn::Conv2d, nn::BatchNorm2d>> shortcut;

  Tensor forward(const Tensor& x) const {
    const Tensor y = nn::conv_norm(conv2, bn2, nn::conv_norm(conv1, bn1, x, Activation::Kind::relu));
    return ballast::add(y, shortcut ? shortcut->forward(x) : x, Activation::Kind::relu);
  }

  static Block make(std::int64_t in, std::int64_t out, std::int64_t stride) {
    Block block{.conv1{in, out, 3, {.stride = stride, .padding = 1, .bias = false}},
                .bn1{out},
                .conv2{out, out, 3, {.padding = 1, .bias = false}},
                .bn2{out},
                .shortcut = {}};
    if (in != out || stride != 1)
      block.shortcut.emplace(nn::Conv2d{in, out, 1, {.stride = stride, .bias = false}}, nn::BatchNorm2d{out});
    return block;
  }
};

struct SmallResNet {
  nn::Conv2d conv1{3, 8, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d bn1{8};
  std::vector<Block> layer1 = {Block::make(8, 8, 1)};
  std::vector<Block> layer2 = {Block::make(8, 16, 2)};
  nn::Linear fc{16, 10};

  /// [batch, 3, height, width] → [batch, 10].
  Tensor forward(const Tensor& images) const {
    Tensor x = nn::conv_norm(conv1, bn1, images, Activation::Kind::relu);
    for (const auto* stage : {&layer1, &layer2}) {
      for (const Block& block : *stage) x = block.forward(x);
    }
    return fc.forward(ballast::flatten(ballast::global_avg_pool(x)));
  }
};
