// SPDX-License-Identifier: Apache-2.0
#include "ballast/nn/embedding.h"

#include "ballast/nn/activation.h"
#include "ballast/ops/movement.h"
#include "nn/parameters.h"

namespace ballast::nn {

Embedding::Embedding(std::int64_t count, std::int64_t dim, const EmbeddingOptions& embedding_options)
    : num_embeddings(count),
      embedding_dim(dim),
      options(embedding_options),
      weight(parameter({count, dim})) {}

Tensor Embedding::forward(const Tensor& index) const {
  return place.run("Embedding", [&] { return embedding(index, weight); });
}

PReLU::PReLU(std::int64_t parameters, const PReLUOptions& prelu_options)
    : num_parameters(parameters), options(prelu_options), alpha(parameter({parameters})) {}

}  // namespace ballast::nn
