// SPDX-License-Identifier: Apache-2.0
// Attention and the transformer layers built on it, with PyTorch's member names. MultiheadAttention holds its
// projections apart: query, key, value and output, each like a Linear; PyTorch's packed in_proj_weight
// becomes three views of it.
//
// Takes sequences [length, batch, features], [batch, length, features] with batch_first, or [length,
// features]. Gives: forward() a tensor of the shape of the queries (x, target). Throws: constructors
// Errc::invalid_argument for heads that do not divide the features, and a number of layers below 0; forward()
// Errc::shape_mismatch for queries, keys, values and masks that do not belong together, unsupported for
// `causal` with add_bias_kv or add_zero_attn, bad_dtype for F64 and integers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ballast/detail/nn/linear.h"
#include "ballast/detail/nn/norm.h"
#include "ballast/detail/nn/place.h"
#include "ballast/detail/ops/matmul.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true;
  bool add_bias_kv = false;
  bool add_zero_attn = false;
  std::optional<std::int64_t> kdim = {};
  std::optional<std::int64_t> vdim = {};
  bool batch_first = false;
};

/// PyTorch's masks: where a BOOL mask is true, nothing is looked at; numbers are added to the scores. (The
/// operation scaled_dot_product_attention has it the other way round, as PyTorch's has.)
struct AttentionMasks {
  Tensor attention = {};    ///< [queries, keys] or [batch * heads, queries, keys]
  Tensor key_padding = {};  ///< [batch, keys]
  bool causal = false;      ///< query i looks at the keys up to i
};

/// Keys and values of the tokens seen so far, for decoding one token after the other. There is room for more
/// than was seen, and it doubles, so that a token is written and none is copied; a copy has memory of its
/// own. In a trace, which knows values and no memory, what is appended is concatenated.
class KVCache {
 public:
  /// All there are, as views.
  struct Seen {
    Tensor keys;    ///< [batch, heads, tokens, features]
    Tensor values;  ///< [batch, heads, tokens, features]
  };

  KVCache() = default;
  KVCache(const KVCache& other);
  KVCache(KVCache&& other) noexcept = default;
  KVCache& operator=(const KVCache& other);
  KVCache& operator=(KVCache&& other) noexcept = default;
  ~KVCache() = default;

  /// Takes in keys and values [batch, heads, tokens, features] and returns all there are: views, whose
  /// elements stay as they are until truncate(). Errc::shape_mismatch unless they follow what is there. In a
  /// trace the cache must be made (or copied) by the code that is traced, or be empty: what a trace appends
  /// has no values afterwards (Errc::traced_value).
  Seen append(const Tensor& keys, const Tensor& values);

  /// Tokens seen.
  [[nodiscard]] std::int64_t length() const noexcept { return length_; }

  /// Forgets the tokens from this one on; views of them are overwritten by the next append().
  /// Errc::invalid_argument unless there are as many.
  void truncate(std::int64_t length);

 private:
  void enter_trace();

  Tensor keys_;  // the third dimension has room
  Tensor values_;
  std::int64_t length_ = 0;
  const void* trace_ = nullptr;  // the one it was filled in
};

struct MultiheadAttention {
  static constexpr LayerKind kind = LayerKind::multihead_attention;
  std::int64_t embed_dim;
  std::int64_t num_heads;
  MultiheadAttentionOptions options;
  Linear query;   ///< embed → embed; a third of PyTorch's in_proj_weight
  Linear key;     ///< kdim → embed
  Linear value;   ///< vdim → embed
  Linear output;  ///< PyTorch's out_proj
  Tensor bias_k;  ///< [1, 1, embed], undefined without add_bias_kv
  Tensor bias_v;  ///< the same
  Place place;

  MultiheadAttention(std::int64_t embed, std::int64_t heads, const MultiheadAttentionOptions& options = {});

  /// [queries, batch, embed], or [batch, queries, embed] with batch_first, or without batch.
  [[nodiscard]] Tensor forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                               const AttentionMasks& masks = {}) const;

  /// A sequence that looks at itself.
  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionMasks& masks = {}) const {
    return forward(x, x, x, masks);
  }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) {
    visit("query.weight", self.query.weight);
    visit("key.weight", self.key.weight);
    visit("value.weight", self.value.weight);
    if (self.options.bias) {
      visit("query.bias", self.query.bias);
      visit("key.bias", self.key.bias);
      visit("value.bias", self.value.bias);
    }
    if (self.options.add_bias_kv) {
      visit("bias_k", self.bias_k);
      visit("bias_v", self.bias_v);
    }
    visit("output.weight", self.output.weight);
    if (self.options.bias) visit("output.bias", self.output.bias);
  }
};

/// PyTorch's "relu" and "gelu".
enum class TransformerActivation : std::uint8_t { relu, gelu };

/// Of Transformer and its layers. What one layer does not know, the numbers of layers, is
/// Errc::invalid_argument when it is made.
struct TransformerOptions {
  std::int64_t num_encoder_layers = 6;  ///< Transformer
  std::int64_t num_decoder_layers = 6;  ///< Transformer
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
};

struct TransformerEncoderLayer {
  TransformerOptions options;
  MultiheadAttention self_attn;
  Linear linear1;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;

  TransformerEncoderLayer(std::int64_t model, std::int64_t heads, const TransformerOptions& options = {});

  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionMasks& masks = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
  BALLAST_FIELDS(self_attn, linear1, linear2, norm1, norm2);
};

struct TransformerDecoderLayer {
  TransformerOptions options;
  MultiheadAttention self_attn;
  MultiheadAttention multihead_attn;
  Linear linear1;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;
  LayerNorm norm3;

  TransformerDecoderLayer(std::int64_t model, std::int64_t heads, const TransformerOptions& options = {});

  /// `memory` is the encoder's result.
  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks = {},
                               const AttentionMasks& memory_masks = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
  BALLAST_FIELDS(self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3);
};

/// Layers of one kind in a row; with `norm`, a LayerNorm behind them.
struct TransformerEncoder {
  std::vector<TransformerEncoderLayer> layers;
  std::optional<LayerNorm> norm;

  TransformerEncoder(const TransformerEncoderLayer& layer, std::int64_t num_layers,
                     std::optional<LayerNorm> norm = {});

  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionMasks& masks = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
  BALLAST_FIELDS(layers, norm);
};

struct TransformerDecoder {
  std::vector<TransformerDecoderLayer> layers;
  std::optional<LayerNorm> norm;

  TransformerDecoder(const TransformerDecoderLayer& layer, std::int64_t num_layers,
                     std::optional<LayerNorm> norm = {});

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks = {},
                               const AttentionMasks& memory_masks = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
  BALLAST_FIELDS(layers, norm);
};

/// Both of them, each with a norm behind it.
struct Transformer {
  TransformerEncoder encoder;
  TransformerDecoder decoder;

  Transformer(std::int64_t model, std::int64_t heads, const TransformerOptions& options = {});

  /// The decoder's result for `target`, which looks at what the encoder makes of `source`.
  [[nodiscard]] Tensor forward(const Tensor& source, const Tensor& target,
                               const AttentionMasks& source_masks = {},
                               const AttentionMasks& target_masks = {},
                               const AttentionMasks& memory_masks = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
  BALLAST_FIELDS(encoder, decoder);
};

/// Rotary positions for queries and keys, [..., length, features]; without parameters.
struct RotaryEmbedding {
  std::int64_t dim;                         ///< features that are turned
  double base = 10000;                      ///< as of rotary_tables()
  RotaryPairs pairs = RotaryPairs::halves;  ///< which features are turned together
  Place place = {};

  /// `first`: the position of x's first element.
  [[nodiscard]] Tensor forward(const Tensor& x, std::int64_t first = 0) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

}  // namespace ballast::nn

#pragma GCC visibility pop
