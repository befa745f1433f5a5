// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/attention.h"

#include <limits>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/matmul.h"
#include "ballast/detail/ops/movement.h"
#include "nn/parameters.h"

namespace ballast::nn {

MultiheadAttention::MultiheadAttention(std::int64_t embed, std::int64_t heads,
                                       const MultiheadAttentionOptions& attention_options)
    : embed_dim(embed),
      num_heads(heads),
      options(attention_options),
      query(embed, embed, {.bias = options.bias}),
      key(options.kdim.value_or(embed), embed, {.bias = options.bias}),
      value(options.vdim.value_or(embed), embed, {.bias = options.bias}),
      output(embed, embed, {.bias = options.bias}) {
  require_positive("MultiheadAttention", "the number of heads", heads);
  if (embed % heads != 0)
    fail(Errc::invalid_argument, "MultiheadAttention", "{} features cannot be split into {} heads", embed,
         heads);
  if (options.add_bias_kv) bias_k = bias_v = parameter({1, 1, embed});
}

namespace {

Tensor project(const Linear& by, const Tensor& x) {
  return linear(x, by.weight, by.bias, {.cache = &by.place.cache});
}

// [batch, length, embed] → [batch, heads, length, embed / heads].
Tensor by_heads(const Tensor& x, std::int64_t heads) {
  return x.reshape({x.shape()[0], x.shape()[1], heads, x.shape()[2] / heads}).permute({0, 2, 1, 3});
}

// What is added to the scores where PyTorch's masks say so: a BOOL one forbids where it is true.
Tensor additive(const Tensor& mask) {
  if (mask.dtype() != DType::boolean) return mask;
  return masked_fill(zeros(mask.shape()), mask, -std::numeric_limits<double>::infinity());
}

// `mask` with `extra` more keys that anybody may look at.
Tensor widened(const Tensor& mask, std::int64_t extra) {
  return extra == 0 ? mask : pad(mask, {0, extra});
}

// Broadcasts to [batch, heads, queries, keys]; undefined when there is nothing to mask.
Tensor joined_mask(const AttentionMasks& masks, std::int64_t heads, std::int64_t extra) {
  Tensor joined;
  if (masks.attention.defined()) {
    joined = widened(additive(masks.attention), extra);
    if (joined.rank() == 3)
      joined = joined.reshape({joined.shape()[0] / heads, heads, joined.shape()[1], joined.shape()[2]});
  }
  if (masks.key_padding.defined()) {
    Tensor padding = widened(additive(masks.key_padding), extra);
    padding = padding.reshape({padding.rank() == 1 ? 1 : padding.shape()[0], 1, 1, -1});
    joined = joined.defined() ? add(joined, padding) : padding;
  }
  return joined;
}

void check_attention(const MultiheadAttention& layer, const Tensor& queries, const Tensor& keys,
                     const Tensor& values) {
  const auto text = [](const Tensor& x) { return to_string(x.shape()); };
  const std::size_t rank = queries.rank();
  if ((rank != 2 && rank != 3) || keys.rank() != rank || values.rank() != rank) {
    fail(Errc::shape_mismatch, "attention", "queries {}, keys {}, values {}: each must be [{}, {}]",
         text(queries), text(keys), text(values),
         layer.options.batch_first ? "batch, length" : "length, batch", "features");
  }
  const std::size_t batch = layer.options.batch_first ? 0 : 1;
  const std::size_t length = rank == 2 ? 0 : 1 - batch;
  if (keys.shape()[length] != values.shape()[length] ||
      (rank == 3 &&
       (keys.shape()[batch] != queries.shape()[batch] || values.shape()[batch] != keys.shape()[batch]))) {
    fail(Errc::shape_mismatch, "attention", "queries {}, keys {} and values {} do not belong together",
         text(queries), text(keys), text(values));
  }
}

// Keys (or values) with the learned one and the zero that the options ask for after the others.
Tensor with_extra(const MultiheadAttention& layer, Tensor x, const Tensor& bias) {
  if (layer.options.add_bias_kv)
    x = concat({x, bias.to(x.dtype()).expand({x.shape()[0], 1, x.shape()[2]})}, 1);
  if (layer.options.add_zero_attn) x = concat({x, zeros({x.shape()[0], 1, x.shape()[2]}, x.dtype())}, 1);
  return x;
}

Tensor attend(const MultiheadAttention& layer, const Tensor& queries, const Tensor& keys,
              const Tensor& values, const AttentionMasks& masks) {
  const std::int64_t extra = (layer.options.add_bias_kv ? 1 : 0) + (layer.options.add_zero_attn ? 1 : 0);
  if (masks.causal && extra > 0)
    fail(Errc::unsupported, "attention", "causal with add_bias_kv or add_zero_attn: give it as a mask");
  const Tensor q = project(layer.query, queries);
  const Tensor k = with_extra(layer, project(layer.key, keys), layer.bias_k);
  const Tensor v = with_extra(layer, project(layer.value, values), layer.bias_v);
  const Tensor mixed = scaled_dot_product_attention(
      by_heads(q, layer.num_heads), by_heads(k, layer.num_heads), by_heads(v, layer.num_heads),
      {.mask = joined_mask(masks, layer.num_heads, extra), .causal = masks.causal});
  return project(layer.output, mixed.permute({0, 2, 1, 3}).reshape(q.shape()));
}

MultiheadAttentionOptions attention_options(const TransformerOptions& options) {
  return {.dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first};
}

// Once the options are such as one layer knows.
const TransformerOptions& known(const char* layer, const TransformerOptions& options) {
  constexpr TransformerOptions kDefaults;
  if (options.num_encoder_layers != kDefaults.num_encoder_layers ||
      options.num_decoder_layers != kDefaults.num_decoder_layers)
    fail(Errc::invalid_argument, layer, "num_encoder_layers and num_decoder_layers are for Transformer");
  return options;
}

LayerNormOptions norm_options(const TransformerOptions& options) {
  return {.eps = options.layer_norm_eps, .bias = options.bias};
}

}  // namespace

Tensor MultiheadAttention::forward(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                   const AttentionMasks& masks) const {
  return place.run("MultiheadAttention", [&] {
    check_attention(*this, queries, keys, values);
    if (queries.rank() == 2)
      return attend(*this, queries.unsqueeze(0), keys.unsqueeze(0), values.unsqueeze(0), masks).squeeze(0);
    if (options.batch_first) return attend(*this, queries, keys, values, masks);
    const auto turned = [](const Tensor& x) { return x.transpose(0, 1); };
    return turned(attend(*this, turned(queries), turned(keys), turned(values), masks)).contiguous();
  });
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t model, std::int64_t heads,
                                                 const TransformerOptions& layer_options)
    : options(known("TransformerEncoderLayer", layer_options)),
      self_attn(model, heads, attention_options(options)),
      linear1(model, options.dim_feedforward, {.bias = options.bias}),
      linear2(options.dim_feedforward, model, {.bias = options.bias}),
      norm1(model, norm_options(options)),
      norm2(model, norm_options(options)) {}

namespace {

// linear2(activation(linear1(x))).
Tensor feed_forward(const auto& layer, const Tensor& x) {
  const Activation activation = layer.options.activation == TransformerActivation::relu
                                    ? Activation::Kind::relu
                                    : Activation::Kind::gelu;
  return layer.linear2.forward(layer.linear1.forward(x, activation));
}

// x plus a step on it, normalised before the step or after the sum.
template <class Step>
Tensor residual(const Tensor& x, const LayerNorm& norm, bool norm_first, const Step& step) {
  return norm_first ? add(x, step(norm.forward(x))) : norm.forward(add(x, step(x)));
}

}  // namespace

Tensor TransformerEncoderLayer::forward(const Tensor& x, const AttentionMasks& masks) const {
  const Tensor attended =
      residual(x, norm1, options.norm_first, [&](const Tensor& in) { return self_attn.forward(in, masks); });
  return residual(attended, norm2, options.norm_first,
                  [&](const Tensor& in) { return feed_forward(*this, in); });
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t model, std::int64_t heads,
                                                 const TransformerOptions& layer_options)
    : options(known("TransformerDecoderLayer", layer_options)),
      self_attn(model, heads, attention_options(options)),
      multihead_attn(model, heads, attention_options(options)),
      linear1(model, options.dim_feedforward, {.bias = options.bias}),
      linear2(options.dim_feedforward, model, {.bias = options.bias}),
      norm1(model, norm_options(options)),
      norm2(model, norm_options(options)),
      norm3(model, norm_options(options)) {}

Tensor TransformerDecoderLayer::forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks,
                                        const AttentionMasks& memory_masks) const {
  const bool first = options.norm_first;
  const Tensor own =
      residual(x, norm1, first, [&](const Tensor& in) { return self_attn.forward(in, masks); });
  const Tensor crossed = residual(own, norm2, first, [&](const Tensor& in) {
    return multihead_attn.forward(in, memory, memory, memory_masks);
  });
  return residual(crossed, norm3, first, [&](const Tensor& in) { return feed_forward(*this, in); });
}

namespace {

template <class Layer>
std::vector<Layer> copies_of(const char* container, const Layer& layer, std::int64_t count) {
  if (count < 0) fail(Errc::invalid_argument, container, "{} layers", count);
  return std::vector<Layer>(static_cast<std::size_t>(count), layer);
}

Tensor normalized(const std::optional<LayerNorm>& norm, const Tensor& x) {
  return norm ? norm->forward(x) : x;
}

}  // namespace

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, std::int64_t num_layers,
                                       std::optional<LayerNorm> last_norm)
    : layers(copies_of("TransformerEncoder", layer, num_layers)), norm(std::move(last_norm)) {}

Tensor TransformerEncoder::forward(const Tensor& x, const AttentionMasks& masks) const {
  Tensor y = x;
  for (const TransformerEncoderLayer& layer : layers) y = layer.forward(y, masks);
  return normalized(norm, y);
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, std::int64_t num_layers,
                                       std::optional<LayerNorm> last_norm)
    : layers(copies_of("TransformerDecoder", layer, num_layers)), norm(std::move(last_norm)) {}

Tensor TransformerDecoder::forward(const Tensor& x, const Tensor& memory, const AttentionMasks& masks,
                                   const AttentionMasks& memory_masks) const {
  Tensor y = x;
  for (const TransformerDecoderLayer& layer : layers) y = layer.forward(y, memory, masks, memory_masks);
  return normalized(norm, y);
}

namespace {

TransformerOptions of_layer(TransformerOptions options) {
  options.num_encoder_layers = TransformerOptions{}.num_encoder_layers;
  options.num_decoder_layers = TransformerOptions{}.num_decoder_layers;
  return options;
}

}  // namespace

Transformer::Transformer(std::int64_t model, std::int64_t heads, const TransformerOptions& options)
    : encoder(TransformerEncoderLayer(model, heads, of_layer(options)), options.num_encoder_layers,
              LayerNorm(model, norm_options(options))),
      decoder(TransformerDecoderLayer(model, heads, of_layer(options)), options.num_decoder_layers,
              LayerNorm(model, norm_options(options))) {}

Tensor Transformer::forward(const Tensor& source, const Tensor& target, const AttentionMasks& source_masks,
                            const AttentionMasks& target_masks, const AttentionMasks& memory_masks) const {
  return decoder.forward(target, encoder.forward(source, source_masks), target_masks, memory_masks);
}

Tensor RotaryEmbedding::forward(const Tensor& x, std::int64_t first) const {
  return place.run("RotaryEmbedding", [&] {
    if (x.rank() < 2)
      fail(Errc::shape_mismatch, "rotary_embedding", "{} is not [..., length, features]",
           to_string(x.shape()));
    return rotary_embedding(x, rotary_tables(x.size(-2), dim, base, first), pairs);
  });
}

}  // namespace ballast::nn
