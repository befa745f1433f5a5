// SPDX-License-Identifier: Apache-2.0
// diffusers' UNet2DConditionModel, the network of Stable Diffusion 1 and 2: a U-Net that is told the time by
// an embedding and the text by cross attention. Its parts have diffusers' names.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "attention.h"
#include "ballast/load.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "checks.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

/// As in config.json. What is left out is as in Stable Diffusion 1.
struct DiffusionConfig {
  std::string _class_name;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::vector<std::string> down_block_types;
  std::vector<std::string> up_block_types;
  std::vector<std::int64_t> block_out_channels;
  std::int64_t layers_per_block = 0;
  std::int64_t cross_attention_dim = 0;
  ballast::Value attention_head_dim =
      {};  // how many heads, whatever it is called: a number, or one for each level
  std::int64_t norm_num_groups = 0;
  double norm_eps = 0;
  std::string act_fn;
  bool flip_sin_to_cos = true;
  double freq_shift = 0;
  std::optional<bool> center_input_sample = false;
  std::optional<bool> resnet_skip_time_act = false;
  std::optional<std::string> time_embedding_act_fn;
  std::optional<std::string> timestep_post_act;
  std::optional<ballast::Value> num_attention_heads;
  std::optional<double> mid_block_scale_factor = 1;
  std::optional<double> resnet_out_scale_factor = 1;
  std::optional<std::int64_t> downsample_padding = 1;
  std::optional<std::string> resnet_time_scale_shift = "default";

  [[nodiscard]] std::size_t levels() const { return block_out_channels.size(); }

  [[nodiscard]] std::int64_t heads(std::size_t level) const {
    const bool one = attention_head_dim.kind() == ballast::Kind::integer;
    return (one ? attention_head_dim : attention_head_dim.element(level)).as_int();
  }
};

struct TimestepEmbedding {
  nn::Linear linear_1;
  nn::Linear linear_2;

  Tensor forward(const Tensor& x) const { return linear_2(linear_1(x, ballast::Activation::Kind::silu)); }
};

struct ResnetBlock2D {
  nn::GroupNorm norm1;
  nn::Conv2d conv1;
  nn::Linear time_emb_proj;
  nn::GroupNorm norm2;
  nn::Conv2d conv2;
  std::optional<nn::Conv2d> conv_shortcut;

  Tensor forward(const Tensor& x, const Tensor& time) const {
    const Tensor first =
        conv1(ballast::silu(norm1(x))) + time_emb_proj(ballast::silu(time)).unsqueeze(-1).unsqueeze(-1);
    return (conv_shortcut ? (*conv_shortcut)(x) : x) + conv2(ballast::silu(norm2(first)));
  }

  static ResnetBlock2D make(const DiffusionConfig& config, std::int64_t in, std::int64_t out) {
    const std::int64_t time = 4 * config.block_out_channels.front();
    ResnetBlock2D block{.norm1{config.norm_num_groups, in, {.eps = config.norm_eps}},
                        .conv1{in, out, 3, {.padding = 1}},
                        .time_emb_proj{time, out},
                        .norm2{config.norm_num_groups, out, {.eps = config.norm_eps}},
                        .conv2{out, out, 3, {.padding = 1}},
                        .conv_shortcut = {}};
    if (in != out) block.conv_shortcut.emplace(in, out, 1);
    return block;
  }
};

struct CrossAttention {
  std::int64_t heads;
  nn::Linear to_q;
  nn::Linear to_k;
  nn::Linear to_v;
  nn::Sequential<nn::Linear, nn::Dropout> to_out;

  Tensor forward(const Tensor& x, const Tensor& seen) const {
    return to_out(join_heads(ballast::scaled_dot_product_attention(
        split_heads(to_q(x), heads), split_heads(to_k(seen), heads), split_heads(to_v(seen), heads))));
  }

  static CrossAttention make(std::int64_t size, std::int64_t heads, std::int64_t seen) {
    constexpr nn::LinearOptions plain{.bias = false};
    return {heads, {size, size, plain}, {seen, size, plain}, {seen, size, plain}, {{size, size}, {}}};
  }
};

struct GeGlu {
  nn::Linear proj;

  Tensor forward(const Tensor& x) const {
    const std::vector<Tensor> parts = ballast::chunk(proj(x), 2, -1);
    return parts[0] * ballast::gelu(parts[1]);
  }
};

struct FeedForward {
  nn::Sequential<GeGlu, nn::Dropout, nn::Linear> net;
};

struct BasicTransformerBlock {
  nn::LayerNorm norm1;
  CrossAttention attn1;
  nn::LayerNorm norm2;
  CrossAttention attn2;
  nn::LayerNorm norm3;
  FeedForward ff;

  Tensor forward(const Tensor& x, const Tensor& text) const {
    const Tensor normed = norm1(x);
    const Tensor seen = x + attn1.forward(normed, normed);
    const Tensor read = seen + attn2.forward(norm2(seen), text);
    return read + ff.net(norm3(read));
  }
};

/// A linear map of each pixel: a convolution in Stable Diffusion 1, a matrix in 2, by the shape in the file.
struct PixelProjection {
  Tensor weight;
  Tensor bias;

  Tensor forward(const Tensor& x) const {
    return ballast::linear(x, weight.reshape({weight.size(0), -1}).t(), bias);
  }
};

struct Transformer2D {
  nn::GroupNorm norm;
  PixelProjection proj_in;
  std::vector<BasicTransformerBlock> transformer_blocks;
  PixelProjection proj_out;

  Tensor forward(const Tensor& x, const Tensor& text) const {
    Tensor pixels = proj_in.forward(ballast::flatten(norm(x), 2).permute({0, 2, 1}));
    for (const BasicTransformerBlock& block : transformer_blocks) pixels = block.forward(pixels, text);
    return x + proj_out.forward(pixels).permute({0, 2, 1}).reshape(x.shape());
  }

  static Transformer2D make(const DiffusionConfig& config, std::int64_t size, std::int64_t heads) {
    const nn::LayerNorm norm{size};
    return {
        .norm{config.norm_num_groups, size, {.eps = 1e-6}},
        .proj_in = {},
        .transformer_blocks = {{.norm1 = norm,
                                .attn1 = CrossAttention::make(size, heads, size),
                                .norm2 = norm,
                                .attn2 = CrossAttention::make(size, heads, config.cross_attention_dim),
                                .norm3 = norm,
                                .ff{{GeGlu{{size, 8 * size}}, nn::Dropout{}, nn::Linear{4 * size, size}}}}},
        .proj_out = {}};
  }
};

struct Sampler {
  nn::Conv2d conv;
};

/// One level, on the way down or up. Some have no attention, the last one of each way does not change the
/// size.
struct DiffusionLevel {
  std::vector<ResnetBlock2D> resnets;
  std::vector<Transformer2D> attentions;
  std::vector<Sampler> downsamplers;
  std::vector<Sampler> upsamplers;

  /// Layer i: a residual block, and attention where there is some.
  Tensor layer(std::size_t i, const Tensor& x, const Tensor& time, const Tensor& text) const {
    const Tensor out = resnets[i].forward(x, time);
    return attentions.empty() ? out : attentions[i].forward(out, text);
  }
};

struct DiffusionMiddle {
  std::vector<ResnetBlock2D> resnets;
  std::vector<Transformer2D> attentions;
};

struct DiffusionUNet {
  std::int64_t waves_count;
  bool cosines_first;
  double freq_shift;
  nn::Conv2d conv_in;
  TimestepEmbedding time_embedding;
  std::vector<DiffusionLevel> down_blocks;
  DiffusionMiddle mid_block;
  std::vector<DiffusionLevel> up_blocks;
  nn::GroupNorm conv_norm_out;
  nn::Conv2d conv_out;

  /// images [batch, channels, height, width], times F32 [batch], text [batch, tokens, features] → the noise
  /// in the images.
  Tensor forward(const Tensor& images, const Tensor& times, const Tensor& text) const {
    const Tensor time = time_embedding.forward(waves(times));
    std::vector<Tensor> seen{conv_in(images)};
    for (const DiffusionLevel& level : down_blocks) {
      for (std::size_t i = 0; i < level.resnets.size(); ++i)
        seen.push_back(level.layer(i, seen.back(), time, text));
      for (const Sampler& half : level.downsamplers) seen.push_back(half.conv(seen.back()));
    }
    Tensor x = mid_block.resnets[0].forward(seen.back(), time);
    x = mid_block.resnets[1].forward(mid_block.attentions[0].forward(x, text), time);
    for (const DiffusionLevel& level : up_blocks) {
      for (std::size_t i = 0; i < level.resnets.size(); ++i) {
        x = level.layer(i, ballast::concat({x, seen.back()}, 1), time, text);
        seen.pop_back();
      }
      for (const Sampler& twice : level.upsamplers) {
        const Tensor& next = seen.back();  // odd sizes were rounded up on the way down
        x = twice.conv(ballast::resize(x, {.size = {next.size(2), next.size(3)}}));
      }
    }
    return conv_out(ballast::silu(conv_norm_out(x)));
  }

  /// Times as sines and cosines of many frequencies.
  Tensor waves(const Tensor& times) const {
    const std::int64_t half = waves_count / 2;
    const double step = -std::log(10000.0) / (static_cast<double>(half) - freq_shift);
    const Tensor angles =
        times.unsqueeze(1) * ballast::exp(ballast::arange(0, half).to(ballast::DType::f32) * step);
    const Tensor sin = ballast::sin(angles);
    const Tensor cos = ballast::cos(angles);
    return cosines_first ? ballast::concat({cos, sin}, 1) : ballast::concat({sin, cos}, 1);
  }

  static DiffusionUNet make(const DiffusionConfig& config);
};

inline DiffusionLevel diffusion_down(const DiffusionConfig& config, std::size_t level) {
  const std::int64_t out = config.block_out_channels[level];
  const bool attends = config.down_block_types.at(level) == "CrossAttnDownBlock2D";
  DiffusionLevel made;
  for (std::int64_t i = 0; i < config.layers_per_block; ++i) {
    const std::int64_t in = i > 0 ? out : config.block_out_channels[std::max<std::size_t>(level, 1) - 1];
    made.resnets.push_back(ResnetBlock2D::make(config, in, out));
    if (attends) made.attentions.push_back(Transformer2D::make(config, out, config.heads(level)));
  }
  if (level + 1 < config.levels()) made.downsamplers.push_back({{out, out, 3, {.stride = 2, .padding = 1}}});
  return made;
}

/// Beside each layer's input comes what was seen on the way down.
inline DiffusionLevel diffusion_up(const DiffusionConfig& config, std::size_t step) {
  const std::size_t level = config.levels() - 1 - step;
  const std::int64_t out = config.block_out_channels[level];
  const std::int64_t below = config.block_out_channels[std::min(level + 1, config.levels() - 1)];
  const std::int64_t above = config.block_out_channels[std::max<std::size_t>(level, 1) - 1];
  const bool attends = config.up_block_types.at(step) == "CrossAttnUpBlock2D";
  DiffusionLevel made;
  for (std::int64_t i = 0; i <= config.layers_per_block; ++i) {
    const std::int64_t skipped = i == config.layers_per_block ? above : out;
    made.resnets.push_back(ResnetBlock2D::make(config, (i == 0 ? below : out) + skipped, out));
    if (attends) made.attentions.push_back(Transformer2D::make(config, out, config.heads(level)));
  }
  if (level > 0) made.upsamplers.push_back({{out, out, 3, {.padding = 1}}});
  return made;
}

inline void check_diffusion(const DiffusionConfig& config) {
  const auto known = [](const std::vector<std::string>& types, const std::string& way) {
    return std::ranges::all_of(types, [&](const std::string& type) {
      return type == way + "Block2D" || type == "CrossAttn" + way + "Block2D";
    });
  };
  const char* const name = "UNet2DConditionModel";
  require_type(config._class_name, name);
  require(config.levels() > 0 && config.down_block_types.size() == config.levels() &&
              config.up_block_types.size() == config.levels(),
          name, "another number of blocks than of block_out_channels");
  require(known(config.down_block_types, "Down") && known(config.up_block_types, "Up"), name, "block types");
  require(config.act_fn == "silu" && !config.time_embedding_act_fn && !config.timestep_post_act, name,
          "activations");
  require(!config.num_attention_heads && !config.resnet_skip_time_act.value_or(false), name,
          "num_attention_heads or resnet_skip_time_act");
  require(!config.center_input_sample.value_or(false) && config.resnet_time_scale_shift == "default", name,
          "center_input_sample or resnet_time_scale_shift");
  require(config.mid_block_scale_factor == 1 && config.resnet_out_scale_factor == 1 &&
              config.downsample_padding == 1,
          name, "scale factors or padding");
}

inline DiffusionUNet DiffusionUNet::make(const DiffusionConfig& config) {
  check_diffusion(config);
  const std::int64_t first = config.block_out_channels.front();
  const std::int64_t last = config.block_out_channels.back();
  DiffusionUNet net{
      .waves_count = first,
      .cosines_first = config.flip_sin_to_cos,
      .freq_shift = config.freq_shift,
      .conv_in{config.in_channels, first, 3, {.padding = 1}},
      .time_embedding{{first, 4 * first}, {4 * first, 4 * first}},
      .down_blocks = {},
      .mid_block{.resnets{2, ResnetBlock2D::make(config, last, last)},
                 .attentions{Transformer2D::make(config, last, config.heads(config.levels() - 1))}},
      .up_blocks = {},
      .conv_norm_out{config.norm_num_groups, first, {.eps = config.norm_eps}},
      .conv_out{first, config.out_channels, 3, {.padding = 1}}};
  for (std::size_t i = 0; i < config.levels(); ++i) {
    net.down_blocks.push_back(diffusion_down(config, i));
    net.up_blocks.push_back(diffusion_up(config, i));
  }
  return net;
}

}  // namespace models
