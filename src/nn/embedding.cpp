// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/embedding.h"

#include <cstring>

#include "ballast/detail/ops/movement.h"
#include "nn/parameters.h"

namespace ballast::nn {

Embedding::Embedding(std::int64_t count, std::int64_t dim, const EmbeddingOptions& embedding_options)
    : num_embeddings(count), embedding_dim(dim), options(embedding_options), weight(parameter({count, dim})) {
  if (options.mode != EmbeddingBagMode::mean || options.include_last_offset)
    fail(Errc::invalid_argument, "Embedding", "mode and include_last_offset are for EmbeddingBag");
}

std::vector<Embedding> Embedding::without_sizes() {
  std::vector<Embedding> layers = {{0, 0}};
  layers[0].weight = {};
  return layers;
}

bool Embedding::take_sizes(std::span<const Shape> shapes) {
  if (shapes[0].size() != 2) return false;
  *this = Embedding(shapes[0][0], shapes[0][1], options);
  return true;
}

Tensor Embedding::forward(const Tensor& index) const {
  return place.run("Embedding", [&] { return embedding(index, weight); });
}

// The row that stands for no word.
void Embedding::adjust_initial(std::string_view /*field*/, Tensor& value) const {
  if (!options.padding_idx) return;
  const std::int64_t row = *options.padding_idx + (*options.padding_idx < 0 ? num_embeddings : 0);
  if (row < 0 || row >= num_embeddings)
    fail(Errc::invalid_argument, "Embedding", "padding_idx {} for {} rows", *options.padding_idx,
         num_embeddings);
  const std::size_t bytes =
      static_cast<std::size_t>(value.size_bytes()) / static_cast<std::size_t>(num_embeddings);
  std::memset(value.mutable_data() + static_cast<std::size_t>(row) * bytes, 0, bytes);
}

EmbeddingBag::EmbeddingBag(std::int64_t count, std::int64_t dim, const EmbeddingOptions& bag_options)
    : num_embeddings(count), embedding_dim(dim), options(bag_options), weight(parameter({count, dim})) {}

Tensor EmbeddingBag::forward(const Tensor& index, const Tensor& offsets,
                             const Tensor& per_sample_weights) const {
  return place.run("EmbeddingBag", [&] {
    return embedding_bag(index, weight,
                         {.offsets = offsets,
                          .mode = options.mode,
                          .per_sample_weights = per_sample_weights,
                          .include_last_offset = options.include_last_offset,
                          .padding_idx = options.padding_idx});
  });
}

}  // namespace ballast::nn
