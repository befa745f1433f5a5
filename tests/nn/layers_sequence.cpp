// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and attention.
#include "nn/layers.h"

namespace ballast::nn_tests {
namespace {

std::int64_t size(const Json& args, std::size_t i) {
  return args["sizes"][i].get<std::int64_t>();
}

template <class Options>
Options recurrent_options(const Json& a) {
  Options options;
  options.num_layers = integer(a, "num_layers");
  options.bias = flag(a, "bias");
  options.batch_first = flag(a, "batch_first");
  options.bidirectional = flag(a, "bidirectional");
  return options;
}

Tensors lstm(const Case& one) {
  auto options = recurrent_options<nn::RecurrentOptions>(one.args);
  options.proj_size = integer(one.args, "proj_size");
  const auto model = loaded(one, nn::LSTM(size(one.args, 0), size(one.args, 1), options));
  const LstmResult result = model.layer.forward(input(one, 0), input(one, 1), input(one, 2));
  return {result.output, result.hidden, result.cell};
}

Tensors gru(const Case& one) {
  const auto model = loaded(
      one, nn::GRU(size(one.args, 0), size(one.args, 1), recurrent_options<nn::RecurrentOptions>(one.args)));
  const RecurrentResult result = model.layer.forward(input(one, 0), input(one, 1));
  return {result.output, result.hidden};
}

Tensors rnn(const Case& one) {
  auto options = recurrent_options<nn::RecurrentOptions>(one.args);
  options.nonlinearity =
      one.args["nonlinearity"] == "tanh" ? nn::RNNNonlinearity::tanh : nn::RNNNonlinearity::relu;
  const auto model = loaded(one, nn::RNN(size(one.args, 0), size(one.args, 1), options));
  const RecurrentResult result = model.layer.forward(input(one, 0), input(one, 1));
  return {result.output, result.hidden};
}

Tensors attention(const Case& one) {
  const Json& a = one.args;
  nn::MultiheadAttentionOptions options{.bias = flag(a, "bias"),
                                        .add_bias_kv = flag(a, "add_bias_kv"),
                                        .add_zero_attn = flag(a, "add_zero_attn"),
                                        .batch_first = flag(a, "batch_first")};
  if (a.contains("kdim")) options.kdim = integer(a, "kdim");
  if (a.contains("vdim")) options.vdim = integer(a, "vdim");
  const auto model = loaded(one, nn::MultiheadAttention(integer(a, "embed"), integer(a, "heads"), options));
  const nn::AttentionMasks masks{.attention = input(one, 3), .key_padding = input(one, 4)};
  if (!input(one, 1).defined()) return {model.layer.forward(input(one, 0), masks)};
  return {model.layer.forward(input(one, 0), input(one, 1), input(one, 2), masks)};
}

template <class Layer>
Model<Layer> transformer(const Case& one) {
  const Json& a = one.args;
  return loaded(one, Layer(integer(a, "model"), integer(a, "heads"),
                           {.dim_feedforward = integer(a, "dim_feedforward"),
                            .activation = a["activation"] == "relu" ? nn::TransformerActivation::relu
                                                                    : nn::TransformerActivation::gelu,
                            .batch_first = flag(a, "batch_first"),
                            .norm_first = flag(a, "norm_first")}));
}

// The causal mask and the flag that means the same must agree.
template <class Forward>
Tensors masked_both_ways(const Tensor& mask, const Forward& forward) {
  const Tensor by_mask = forward(nn::AttentionMasks{.attention = mask});
  if (!mask.defined()) return {by_mask};
  const Tensor by_flag = forward(nn::AttentionMasks{.causal = true});
  return ops_tests::error_of(by_flag, by_mask) <= ops_tests::tolerance(by_mask.dtype()) ? Tensors{by_flag}
                                                                                        : Tensors{};
}

Tensors encoder(const Case& one) {
  const auto model = transformer<nn::TransformerEncoderLayer>(one);
  return masked_both_ways(input(one, 1), [&](const nn::AttentionMasks& masks) {
    return model.layer.forward(input(one, 0), masks);
  });
}

Tensors decoder(const Case& one) {
  const auto model = transformer<nn::TransformerDecoderLayer>(one);
  return masked_both_ways(input(one, 2), [&](const nn::AttentionMasks& masks) {
    return model.layer.forward(input(one, 0), input(one, 1), masks);
  });
}

}  // namespace

Layers sequence_layers() {
  return {{"LSTM", lstm},
          {"GRU", gru},
          {"RNN", rnn},
          {"MultiheadAttention", attention},
          {"TransformerEncoderLayer", encoder},
          {"TransformerDecoderLayer", decoder}};
}

}  // namespace ballast::nn_tests
