// SPDX-License-Identifier: Apache-2.0
// GPT-2 small under the names Hugging Face gives it. Its "Conv1D" is a linear map stored [in, out]: the
// native layout already, so it is a struct of plain tensors, which nothing transposes. lm_head is the token
// embedding again.
#pragma once

#include <vector>

#include "ballast/load.h"
#include "ballast/nn.h"

namespace models {

namespace nn = ballast::nn;

struct Conv1D {
  ballast::Tensor weight;  // [in, out]
  ballast::Tensor bias;

  static Conv1D make(std::int64_t in, std::int64_t out) {
    return {{ballast::DType::f32, {in, out}}, {ballast::DType::f32, {out}}};
  }
};

struct Gpt2Attention {
  Conv1D c_attn = Conv1D::make(768, 3 * 768);
  Conv1D c_proj = Conv1D::make(768, 768);
};

struct Gpt2Mlp {
  Conv1D c_fc = Conv1D::make(768, 3072);
  Conv1D c_proj = Conv1D::make(3072, 768);
};

struct Gpt2Block {
  nn::LayerNorm ln_1{768};
  Gpt2Attention attn;
  nn::LayerNorm ln_2{768};
  Gpt2Mlp mlp;
};

struct Gpt2Transformer {
  nn::Embedding wte{50257, 768};
  nn::Embedding wpe{1024, 768};
  std::vector<Gpt2Block> h = nn::repeat<Gpt2Block>(12);
  nn::LayerNorm ln_f{768};
};

struct Gpt2 {
  Gpt2Transformer transformer;
  nn::Linear lm_head{768, 50257, {.bias = false}};

  /// Files leave lm_head out, or have the causal masks as buffers.
  static ballast::LoadOptions load_options(bool has_lm_head) {
    ballast::LoadOptions options{.rules = {ballast::rules::Drop{R"(\.attn\.(masked_)?bias$)"}}};
    if (!has_lm_head)
      options.rules.emplace_back(ballast::rules::Alias{R"(^transformer\.wte\.weight$)", "lm_head.weight"});
    return options;
  }
};

}  // namespace models
