// SPDX-License-Identifier: Apache-2.0
// A U-Net: down by pooling, up by transposed convolutions, and at every level what was seen on the way down
// beside what comes up. unet.py is the same in PyTorch.
#pragma once

#include <vector>

#include "ballast/nn.h"
#include "ballast/ops.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

using DoubleConv =
    nn::Sequential<nn::Conv2d, nn::BatchNorm2d, nn::ReLU, nn::Conv2d, nn::BatchNorm2d, nn::ReLU>;

inline DoubleConv double_conv(std::int64_t in, std::int64_t out) {
  return {{in, out, 3, {.padding = 1, .bias = false}},  {out}, {},
          {out, out, 3, {.padding = 1, .bias = false}}, {out}, {}};
}

struct UpLevel {
  nn::ConvTranspose2d up;
  DoubleConv conv;

  Tensor forward(const Tensor& x, const Tensor& from_the_way_down) const {
    return conv.forward(ballast::concat({from_the_way_down, up.forward(x)}, 1));
  }

  static UpLevel make(std::int64_t in, std::int64_t out) {
    return {.up{in, out, 2, {.stride = 2}}, .conv = double_conv(2 * out, out)};
  }
};

struct UNet {
  std::vector<DoubleConv> down;
  DoubleConv bottom;
  std::vector<UpLevel> up;
  nn::Conv2d head;
  nn::MaxPool2d pool{2};

  /// [batch, channels, height, width] → [batch, classes, height, width]; both sides a multiple of 2^levels.
  Tensor forward(const Tensor& images) const {
    Tensor x = images;
    std::vector<Tensor> seen;
    for (const DoubleConv& level : down) {
      seen.push_back(level.forward(x));
      x = pool.forward(seen.back());
    }
    x = bottom.forward(x);
    for (const UpLevel& level : up) {
      x = level.forward(x, seen.back());
      seen.pop_back();
    }
    return head.forward(x);
  }

  static UNet make(std::int64_t channels, std::int64_t classes, std::int64_t width, int levels) {
    UNet net{.down = {},
             .bottom = double_conv(width << (levels - 1), width << levels),
             .up = {},
             .head{width, classes, 1}};
    for (int i = 0; i < levels; ++i)
      net.down.push_back(double_conv(i == 0 ? channels : width << (i - 1), width << i));
    for (int i = levels; i > 0; --i) net.up.push_back(UpLevel::make(width << i, width << (i - 1)));
    return net;
  }
};

}  // namespace models
