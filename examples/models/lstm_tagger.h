// SPDX-License-Identifier: Apache-2.0
// Words in, one tag for each out: embeddings, an LSTM that reads both ways, a linear map. lstm_tagger.py is
// the same in PyTorch.
#pragma once

#include "ballast/nn.h"
#include "ballast/ops.h"

namespace models {

namespace nn = ballast::nn;
using ballast::Tensor;

struct LstmTagger {
  nn::Embedding embedding;
  nn::LSTM lstm;
  nn::Linear tags;

  /// I64 [batch, words] → [batch, words, tags].
  Tensor forward(const Tensor& words) const {
    return tags.forward(lstm.forward(embedding.forward(words)).output);
  }

  static LstmTagger make(std::int64_t vocabulary, std::int64_t features, std::int64_t hidden,
                         std::int64_t tag_count) {
    return {.embedding{vocabulary, features},
            .lstm{features, hidden, {.num_layers = 2, .batch_first = true, .bidirectional = true}},
            .tags{2 * hidden, tag_count}};
  }
};

}  // namespace models
