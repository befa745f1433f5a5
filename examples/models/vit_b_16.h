// SPDX-License-Identifier: Apache-2.0
// torchvision's vit_b_16, by hand. Its layers are called encoder_layer_0, encoder_layer_1, …; one rename
// makes them members of a vector.
#pragma once

#include <vector>

#include "ballast/load.h"
#include "ballast/nn.h"

namespace models {

namespace nn = ballast::nn;

struct VitLayer {
  nn::LayerNorm ln_1{768, {.eps = 1e-6}};
  nn::MultiheadAttention self_attention{768, 12, {.batch_first = true}};
  nn::LayerNorm ln_2{768, {.eps = 1e-6}};
  nn::Sequential<nn::Linear, nn::GELU, nn::Dropout, nn::Linear, nn::Dropout> mlp{
      {768, 3072}, {}, {0.0}, {3072, 768}, {0.0}};
};

struct VitEncoder {
  ballast::Tensor pos_embedding{ballast::DType::f32, {1, 197, 768}};
  std::vector<VitLayer> layers = nn::repeat<VitLayer>(12);
  nn::LayerNorm ln{768, {.eps = 1e-6}};
};

struct VitHeads {
  nn::Linear head{768, 1000};
};

struct VitB16 {
  ballast::Tensor class_token{ballast::DType::f32, {1, 1, 768}};
  nn::Conv2d conv_proj{3, 768, 16, {.stride = 16}};
  VitEncoder encoder;
  VitHeads heads;

  static ballast::LoadOptions load_options() { return {.rename = {{R"(\.encoder_layer_(\d+)\.)", ".$1."}}}; }
};

}  // namespace models
