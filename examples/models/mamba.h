// SPDX-License-Identifier: Apache-2.0
// Mamba of any size under the names Hugging Face gives it: no attention; what was read is kept in a state of
// fixed size. lm_head may be the embedding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ballast/load.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "checks.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

/// As in config.json.
struct MambaConfig {
  std::string model_type;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t state_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t conv_kernel = 0;
  std::int64_t time_step_rank = 0;
  bool use_bias = false;
  bool use_conv_bias = true;
  std::string hidden_act;
  double layer_norm_epsilon = 0;
  std::optional<bool> tie_word_embeddings = true;
};

/// What a layer remembers of the tokens so far.
struct MambaMemory {
  Tensor inputs = {};  // of the convolution, the last ones: [batch, inner, kernel - 1]
  Tensor state = {};   // [batch, inner, state]
};

struct MambaMixer {
  MambaConfig config;
  Tensor A_log;
  Tensor D;
  nn::Conv1d conv1d;
  nn::Linear in_proj;
  nn::Linear x_proj;
  nn::Linear dt_proj;
  nn::Linear out_proj;

  /// x [batch, tokens, size], which follow those the memory has seen.
  Tensor forward(const Tensor& x, MambaMemory& memory) const {
    const std::vector<Tensor> parts = ballast::chunk(in_proj(x), 2, -1);  // [batch, tokens, inner] each
    const Tensor inner = mix_neighbours(parts[0], memory);
    return out_proj((scan(inner, memory) + inner * D) * ballast::silu(parts[1]));
  }

  Tensor mix_neighbours(const Tensor& x, MambaMemory& memory) const {
    const std::int64_t kept = config.conv_kernel - 1;
    if (!memory.inputs.defined()) memory.inputs = ballast::zeros({x.size(0), x.size(2), kept});
    const Tensor inputs = ballast::concat({memory.inputs, x.permute({0, 2, 1})}, 2);
    memory.inputs = inputs.narrow(2, inputs.size(2) - kept, kept);
    return conv1d(inputs, ballast::Activation::Kind::silu).permute({0, 2, 1});
  }

  /// The recurrence: how long to remember and what to read and write depend on the token.
  Tensor scan(const Tensor& x, MambaMemory& memory) const {
    const std::vector<Tensor> chosen =
        ballast::split(x_proj(x), {config.time_step_rank, config.state_size, config.state_size}, -1);
    const Tensor time = ballast::softplus(dt_proj(chosen[0])).unsqueeze(-1);  // [batch, tokens, inner, 1]
    const Tensor keep = ballast::exp(-ballast::exp(A_log) * time);            // [batch, tokens, inner, state]
    const Tensor write = time * chosen[1].unsqueeze(2) * x.unsqueeze(-1);
    const Tensor read = chosen[2].unsqueeze(-1);  // [batch, tokens, state, 1]
    if (!memory.state.defined()) memory.state = ballast::zeros({x.size(0), x.size(2), config.state_size});
    std::vector<Tensor> out;
    for (std::int64_t i = 0; i < x.size(1); ++i) {
      const auto token = [i](const Tensor& all) { return all.narrow(1, i, 1).squeeze(1); };
      memory.state = token(keep) * memory.state + token(write);
      out.push_back(ballast::matmul(memory.state, token(read)).squeeze(-1));  // [batch, inner]
    }
    return ballast::stack(out, 1);
  }

  static MambaMixer make(const MambaConfig& config) {
    const std::int64_t inner = config.intermediate_size;
    const nn::LinearOptions bias{.bias = config.use_bias};
    return {.config = config,
            .A_log{ballast::DType::f32, {inner, config.state_size}},
            .D{ballast::DType::f32, {inner}},
            .conv1d{inner, inner, config.conv_kernel, {.groups = inner, .bias = config.use_conv_bias}},
            .in_proj{config.hidden_size, 2 * inner, bias},
            .x_proj{inner, config.time_step_rank + 2 * config.state_size, {.bias = false}},
            .dt_proj{config.time_step_rank, inner},
            .out_proj{inner, config.hidden_size, bias}};
  }
};

struct MambaLayer {
  nn::RMSNorm norm;
  MambaMixer mixer;
};

struct MambaBackbone {
  nn::Embedding embeddings;
  std::vector<MambaLayer> layers;
  nn::RMSNorm norm_f;
};

struct Mamba {
  MambaBackbone backbone;
  nn::Linear lm_head;

  using Cache = std::vector<MambaMemory>;

  /// I64 [batch, tokens], which follow those the cache has seen → [batch, tokens, vocabulary].
  Tensor forward(const Tensor& tokens, Cache& cache) const {
    cache.resize(backbone.layers.size());
    Tensor x = backbone.embeddings(tokens);
    for (std::size_t i = 0; i < cache.size(); ++i)
      x = x + backbone.layers[i].mixer.forward(backbone.layers[i].norm(x), cache[i]);
    return lm_head(backbone.norm_f(x));
  }

  static Mamba make(const MambaConfig& config) {
    require_type(config.model_type, "mamba");
    require(config.hidden_act == "silu", "mamba", "hidden_act " + ballast::quoted(config.hidden_act));
    const nn::RMSNorm norm{config.hidden_size, {.eps = config.layer_norm_epsilon}};
    return {.backbone{
                .embeddings{config.vocab_size, config.hidden_size},
                .layers{static_cast<std::size_t>(config.num_hidden_layers), {norm, MambaMixer::make(config)}},
                .norm_f = norm},
            .lm_head{config.hidden_size, config.vocab_size, {.bias = false}}};
  }

  /// Tied files leave lm_head out, or have it twice.
  static ballast::LoadOptions load_options(const MambaConfig& config) {
    ballast::LoadOptions options{.dtype = ballast::Precision::full, .unused = ballast::OnUnused::error};
    if (config.tie_word_embeddings.value_or(true)) {
      options.rules.emplace_back(ballast::rules::Drop{R"(^lm_head\.weight$)"});
      options.rules.emplace_back(
          ballast::rules::Alias{R"(^backbone\.embeddings\.weight$)", "lm_head.weight"});
    }
    return options;
  }
};

}  // namespace models
