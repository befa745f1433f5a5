// SPDX-License-Identifier: Apache-2.0
// GPT-2 of any size under the names Hugging Face gives it. Its "Conv1D" is a linear map stored [in, out]: the
// native layout already, so it is a struct of plain tensors, which nothing transposes. lm_head is the token
// embedding again.
#pragma once

#include <vector>

#include "attention.h"
#include "ballast/load.h"
#include "ballast/nn.h"
#include "ballast/ops.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

/// As in config.json; the defaults are GPT-2 small.
struct Gpt2Config {
  std::int64_t vocab_size = 50257;
  std::int64_t n_positions = 1024;
  std::int64_t n_embd = 768;
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
};

struct Conv1D {
  Tensor weight;  // [in, out]
  Tensor bias;
  nn::Place place = {};

  Tensor forward(const Tensor& x, ballast::Activation activation = {}) const {
    return ballast::linear(x, weight, bias, {.activation = activation, .cache = &place.cache});
  }

  BALLAST_FIELDS(weight, bias);

  static Conv1D make(std::int64_t in, std::int64_t out) {
    return {{ballast::DType::f32, {in, out}}, {ballast::DType::f32, {out}}};
  }
};

struct Gpt2Attention {
  std::int64_t n_head;
  Conv1D c_attn;
  Conv1D c_proj;

  Tensor forward(const Tensor& x, nn::KVCache* cache) const {
    const std::vector<Tensor> parts = ballast::chunk(c_attn.forward(x), 3, -1);
    nn::KVCache::Seen seen{split_heads(parts[1], n_head), split_heads(parts[2], n_head)};
    const std::int64_t before = cache == nullptr ? 0 : cache->length();
    if (cache != nullptr) seen = cache->append(seen.keys, seen.values);
    return c_proj.forward(join_heads(ballast::scaled_dot_product_attention(
        split_heads(parts[0], n_head), seen.keys, seen.values, {.causal = true, .query_offset = before})));
  }
};

struct Gpt2Mlp {
  Conv1D c_fc;
  Conv1D c_proj;

  Tensor forward(const Tensor& x) const {
    return c_proj.forward(c_fc.forward(x, ballast::Activation::Kind::gelu_tanh));
  }
};

struct Gpt2Block {
  nn::LayerNorm ln_1;
  Gpt2Attention attn;
  nn::LayerNorm ln_2;
  Gpt2Mlp mlp;

  Tensor forward(const Tensor& x, nn::KVCache* cache) const {
    const Tensor attended = x + attn.forward(ln_1.forward(x), cache);
    return attended + mlp.forward(ln_2.forward(attended));
  }

  static Gpt2Block make(std::int64_t size, std::int64_t n_head) {
    return {.ln_1{size},
            .attn{n_head, Conv1D::make(size, 3 * size), Conv1D::make(size, size)},
            .ln_2{size},
            .mlp{Conv1D::make(size, 4 * size), Conv1D::make(4 * size, size)}};
  }
};

struct Gpt2Transformer {
  nn::Embedding wte;
  nn::Embedding wpe;
  std::vector<Gpt2Block> h;
  nn::LayerNorm ln_f;

  Tensor forward(const Tensor& tokens, std::vector<nn::KVCache>* cache) const {
    std::int64_t before = 0;
    if (cache != nullptr) {
      cache->resize(h.size());
      if (!h.empty()) before = cache->front().length();
    }
    Tensor x = wte.forward(tokens) + wpe.forward(ballast::arange(before, before + tokens.shape()[1]));
    for (std::size_t i = 0; i < h.size(); ++i) x = h[i].forward(x, cache == nullptr ? nullptr : &(*cache)[i]);
    return ln_f.forward(x);
  }
};

struct Gpt2 {
  Gpt2Transformer transformer;
  nn::Linear lm_head;

  explicit Gpt2(const Gpt2Config& config = {})
      : transformer{.wte{config.vocab_size, config.n_embd},
                    .wpe{config.n_positions, config.n_embd},
                    .h{static_cast<std::size_t>(config.n_layer),
                       Gpt2Block::make(config.n_embd, config.n_head)},
                    .ln_f{config.n_embd}},
        lm_head{config.n_embd, config.vocab_size, {.bias = false}} {}

  /// I64 [batch, tokens] → [batch, tokens, vocabulary]. With a cache, `tokens` follow those it has seen.
  Tensor forward(const Tensor& tokens, std::vector<nn::KVCache>* cache = nullptr) const {
    return lm_head.forward(transformer.forward(tokens, cache));
  }

  /// Files leave lm_head out, or have the causal masks as buffers.
  static ballast::LoadOptions load_options(bool has_lm_head) {
    ballast::LoadOptions options{.rules = {ballast::rules::Drop{R"(\.attn\.(masked_)?bias$)"}}};
    if (!has_lm_head)
      options.rules.emplace_back(ballast::rules::Alias{R"(^transformer\.wte\.weight$)", "lm_head.weight"});
    return options;
  }

  BALLAST_FIELDS(transformer, lm_head);
};

}  // namespace models
