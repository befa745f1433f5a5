// SPDX-License-Identifier: Apache-2.0
// The same model as export.py's, as structs: fields have the names of the parameters.
#pragma once

#include <string>
#include <vector>

#include "ballast/nn.h"

namespace nn = ballast::nn;

struct NetConfig {
  int channels;
  std::size_t depth;
  std::vector<std::string> labels;
};

struct Block {
  nn::Conv2d conv;
  nn::BatchNorm2d norm;

  static Block make(std::int64_t channels) {
    return {nn::Conv2d{channels, channels, 3, {.padding = 1, .bias = false}}, nn::BatchNorm2d{channels}};
  }
};

struct Net {
  nn::Conv2d stem;
  std::vector<Block> blocks;
  nn::Linear head;

  static Net make(const NetConfig& config) {
    return {nn::Conv2d{3, config.channels, 3}, std::vector<Block>(config.depth, Block::make(config.channels)),
            nn::Linear{config.channels, 10}};
  }
};
