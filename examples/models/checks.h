// SPDX-License-Identifier: Apache-2.0
// Families share names and differ in what they compute: what a header here does not compute is refused, or
// other numbers would come of it without a word.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/error.h"
#include "ballast/value.h"

namespace models {

inline void require(bool computed, const char* model, const std::string& what) {
  if (!computed) throw ballast::Error(ballast::Errc::unsupported, model, what);
}

/// That a folder is one of `wanted`: "model_type" of its configuration.
inline void require_type(const std::string& type, const char* wanted) {
  require(type == wanted, wanted, "the folder holds another model: " + ballast::quoted(type));
}

// Numbers that models are built by, under the names of config.json.
inline constexpr std::string_view kSizes[] = {"vocab_size",
                                              "hidden_size",
                                              "hidden_sizes",
                                              "intermediate_size",
                                              "num_attention_heads",
                                              "num_key_value_heads",
                                              "head_dim",
                                              "num_mel_bins",
                                              "d_model",
                                              "encoder_attention_heads",
                                              "encoder_ffn_dim",
                                              "decoder_attention_heads",
                                              "decoder_ffn_dim",
                                              "max_source_positions",
                                              "max_target_positions",
                                              "max_position_embeddings",
                                              "num_channels",
                                              "patch_size",
                                              "image_size",
                                              "projection_dim",
                                              "depth_divisor",
                                              "kernel_sizes",
                                              "in_channels",
                                              "out_channels",
                                              "strides",
                                              "expand_ratios",
                                              "block_out_channels",
                                              "cross_attention_dim",
                                              "attention_head_dim",
                                              "norm_num_groups",
                                              "num_queries",
                                              "embedding_size",
                                              "state_size",
                                              "conv_kernel",
                                              "time_step_rank"};
inline constexpr std::string_view kCounts[] = {"num_hidden_layers", "encoder_layers",
                                               "decoder_layers",    "depths",
                                               "num_block_repeats", "layers_per_block"};

/// That the sizes in a config.json are some: positive, none beyond 2^24, and no more layers than the weights
/// have tensors. They come from a stranger, and are multiplied, divided by and counted up to.
inline void require_sizes(const ballast::Value& config, std::int64_t tensors) {
  std::vector<ballast::Value> waiting = {config};
  const auto is_among = [](const auto& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  const auto require_one = [&](std::string_view name, const ballast::Value& value, std::int64_t most) {
    if (value.kind() != ballast::Kind::integer) return;
    const bool fits = value.fits_int() && value.as_int() >= 1 && value.as_int() <= most;
    require(fits, "config.json", std::string(name) + " is not from 1 to " + std::to_string(most));
  };
  while (!waiting.empty()) {
    const ballast::Value object = waiting.back();
    waiting.pop_back();
    for (std::size_t i = 0; object.kind() == ballast::Kind::dict && i < object.size(); ++i) {
      const std::string name(object.key(i).as_string());
      const ballast::Value value = object.value(i);
      if (value.kind() == ballast::Kind::dict) waiting.push_back(value);
      const bool is_count = is_among(kCounts, name);
      if (!is_count && !is_among(kSizes, name)) continue;
      const std::int64_t most = is_count ? tensors : std::int64_t{1} << 24;
      require_one(name, value, most);
      for (std::size_t j = 0; value.kind() == ballast::Kind::list && j < value.size(); ++j)
        require_one(name, value.element(j), most);
    }
  }
}

}  // namespace models
