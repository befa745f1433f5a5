// SPDX-License-Identifier: Apache-2.0
// Rows looked up by number.
//
// Gives: forward() rows of the weight: [..., embedding_dim], of bags [bags, embedding_dim]. Throws: forward()
// Errc::offset_out_of_range for a row there is not, bad_dtype for indices that are no integers, and what
// embedding_bag() throws; init() of a model Errc::invalid_argument for a `padding_idx` outside the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ballast/detail/nn/place.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

using EmbeddingBagMode = BagMode;  ///< PyTorch's "sum", "mean" and "max"

/// Of Embedding and EmbeddingBag; what Embedding does not know is Errc::invalid_argument when it is made.
struct EmbeddingOptions {
  EmbeddingBagMode mode = EmbeddingBagMode::mean;  ///< EmbeddingBag
  bool include_last_offset = false;                ///< EmbeddingBag
  std::optional<std::int64_t> padding_idx = {};
};

struct Embedding {
  static constexpr LayerKind kind = LayerKind::embedding;
  std::int64_t num_embeddings;
  std::int64_t embedding_dim;
  EmbeddingOptions options;
  Tensor weight;  ///< [num_embeddings, embedding_dim]
  Place place;

  Embedding(std::int64_t count, std::int64_t dim, const EmbeddingOptions& options = {});

  /// Integers [...] → [..., embedding_dim].
  [[nodiscard]] Tensor forward(const Tensor& index) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  /// For load(), as in Linear. A padding index changes first values only, not what the file holds.
  [[nodiscard]] static std::vector<Embedding> without_sizes();
  bool take_sizes(std::span<const Shape> shapes);

  void adjust_initial(std::string_view field, Tensor& value) const;
  BALLAST_FIELDS(weight);
};

/// Rows summed, averaged or compared in bags.
struct EmbeddingBag {
  static constexpr LayerKind kind = LayerKind::embedding;
  std::int64_t num_embeddings;
  std::int64_t embedding_dim;
  EmbeddingOptions options;
  Tensor weight;  ///< [num_embeddings, embedding_dim]
  Place place;

  EmbeddingBag(std::int64_t count, std::int64_t dim, const EmbeddingOptions& options = {});

  /// Integers [bags, n], or a list and where in it each bag begins; per_sample_weights with sum.
  [[nodiscard]] Tensor forward(const Tensor& index, const Tensor& offsets = {},
                               const Tensor& per_sample_weights = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
  BALLAST_FIELDS(weight);
};

}  // namespace ballast::nn

#pragma GCC visibility pop
