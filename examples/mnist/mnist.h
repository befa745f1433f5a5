// SPDX-License-Identifier: Apache-2.0
// The digit classifier of train.py, as a struct: fields have the names of the parameters.
#pragma once

#include "ballast/nn.h"
#include "ballast/ops.h"

namespace nn = ballast::nn;
using ballast::Tensor;

struct Mnist {
  nn::Conv2d conv1{1, 16, 3};
  nn::BatchNorm2d norm1{16};
  nn::Conv2d conv2{16, 32, 3};
  nn::BatchNorm2d norm2{32};
  nn::MaxPool2d pool{2};
  nn::Linear fc1{32 * 5 * 5, 64};
  nn::Linear fc2{64, 10};

  /// U8 [batch, 28, 28] → [batch, 10].
  Tensor forward(const Tensor& images) const {
    constexpr auto relu = ballast::Activation::Kind::relu;
    Tensor x = (images.unsqueeze(1) / 255 - 0.1307) / 0.3081;
    x = pool.forward(nn::conv_norm(conv1, norm1, x, relu));
    x = pool.forward(nn::conv_norm(conv2, norm2, x, relu));
    return fc2.forward(fc1.forward(ballast::flatten(x), relu));
  }
};
