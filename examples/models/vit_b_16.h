// SPDX-License-Identifier: Apache-2.0
// torchvision's vit_b_16, by hand. Its layers are called encoder_layer_0, encoder_layer_1, …; one rename
// makes them members of a vector.
#pragma once

#include <vector>

#include "ballast/load.h"
#include "ballast/nn.h"
#include "ballast/ops.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

struct VitLayer {
  nn::LayerNorm ln_1{768, {.eps = 1e-6}};
  nn::MultiheadAttention self_attention{768, 12, {.batch_first = true}};
  nn::LayerNorm ln_2{768, {.eps = 1e-6}};
  nn::Sequential<nn::Linear, nn::GELU, nn::Dropout, nn::Linear, nn::Dropout> mlp{
      {768, 3072}, {}, {0.0}, {3072, 768}, {0.0}};

  Tensor forward(const Tensor& x) const {
    const Tensor attended = x + self_attention.forward(ln_1.forward(x));
    return attended + mlp.forward(ln_2.forward(attended));
  }
};

struct VitEncoder {
  Tensor pos_embedding{ballast::DType::f32, {1, 197, 768}};
  std::vector<VitLayer> layers = nn::repeat<VitLayer>(12);
  nn::LayerNorm ln{768, {.eps = 1e-6}};

  Tensor forward(const Tensor& patches) const {
    Tensor x = patches + pos_embedding;
    for (const VitLayer& layer : layers) x = layer.forward(x);
    return ln.forward(x);
  }
};

struct VitHeads {
  nn::Linear head{768, 1000};
};

struct VitB16 {
  Tensor class_token{ballast::DType::f32, {1, 1, 768}};
  nn::Conv2d conv_proj{3, 768, 16, {.stride = 16}};
  VitEncoder encoder;
  VitHeads heads;

  /// [batch, 3, 224, 224] → [batch, 1000].
  Tensor forward(const Tensor& images) const {
    const std::int64_t batch = images.shape()[0];
    const Tensor patches = conv_proj.forward(images).reshape({batch, 768, -1}).permute({0, 2, 1});
    const Tensor x = encoder.forward(ballast::concat({class_token.expand({batch, 1, 768}), patches}, 1));
    return heads.head.forward(x.index({ballast::Slice{}, 0}));
  }

  static ballast::LoadOptions load_options() { return {.rename = {{R"(\.encoder_layer_(\d+)\.)", ".$1."}}}; }
};

}  // namespace models
