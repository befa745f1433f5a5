// SPDX-License-Identifier: Apache-2.0
// Flax and Keras: kernels are [in, out] and [space…, in, out], norms have scale or gamma, statistics have
// other names, and recurrent cells differ in gates and biases.
#include <algorithm>
#include <array>
#include <iterator>

#include "base/fail.h"
#include "model/adapter.h"
#include "tensor/concat.h"

namespace ballast {
namespace {

// [k…, a, b] ↔ [b, a, k…] (swapped) or [a, b, k…].
Tensor kernel_from(const Tensor& in, bool swapped) {
  const auto rank = static_cast<std::int64_t>(in.rank());
  if (rank < 3)
    fail(Errc::shape_mismatch, "adapter", "a convolution's kernel has at least 3 dimensions, not {}",
         to_string(in.shape()));
  std::vector<std::int64_t> order{swapped ? rank - 1 : rank - 2, swapped ? rank - 2 : rank - 1};
  for (std::int64_t i = 0; i < rank - 2; ++i) order.push_back(i);
  return in.permute(order);
}

Tensor kernel_to(const Tensor& in, bool swapped) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 2; i < static_cast<std::int64_t>(in.rank()); ++i) order.push_back(i);
  order.push_back(swapped ? 1 : 0);
  order.push_back(swapped ? 0 : 1);
  return in.permute(order);
}

Tensors conv_from(std::span<const Tensor> in) {
  return {kernel_from(in[0], true)};
}

Tensors conv_to(std::span<const Tensor> in) {
  return {kernel_to(in[0], true)};
}

// Flax's transposed convolution slides the kernel as it is; PyTorch's is the gradient of a convolution, which
// slides it reversed.
Tensor reversed_in_space(const Tensor& in) {
  std::vector<Index> indices(2, Index(Slice{}));
  for (std::size_t i = 2; i < in.rank(); ++i) indices.emplace_back(Slice{{}, {}, -1});
  return in.index(indices);
}

Tensors flax_transpose_from(std::span<const Tensor> in) {
  return {reversed_in_space(kernel_from(in[0], false))};
}

Tensors flax_transpose_to(std::span<const Tensor> in) {
  return {kernel_to(reversed_in_space(in[0]), false)};
}

// [embed, heads, size] → [embed, heads * size]. The way back needs the number of heads, which a tensor does
// not tell.
Tensors heads_joined_in(std::span<const Tensor> in) {
  return {in[0].reshape({in[0].shape().front(), -1})};
}

Tensors heads_joined_out(std::span<const Tensor> in) {
  return {in[0].reshape({-1, in[0].shape().back()})};
}

Tensors flat(std::span<const Tensor> in) {
  return {in[0].reshape({-1})};
}

Tensors scalar(std::span<const Tensor> in) {
  return in[0].numel() == 1 ? Tensors{in[0].reshape({})} : Tensors{in[0]};
}

Tensors needs_heads(std::span<const Tensor>) {
  fail(Errc::unsupported, "adapter",
       "attention cannot be written in Flax's or Keras's layout: it needs the number of heads");
}

// One bias for both products ↔ one for each.
Tensors bias_from_one(std::span<const Tensor> in) {
  return {in[0], blank_like(in[0])};
}

Tensors bias_to_one(std::span<const Tensor> in) {
  return {sum(in[0], in[1])};
}

Tensors lstm_bias_from_hidden(std::span<const Tensor> in) {
  const Tensor hidden = concat_lazy(in, 0);
  return {blank_like(hidden), hidden};
}

Tensors lstm_bias_to_hidden(std::span<const Tensor> in) {
  return split_last(sum(in[0], in[1]), 4);
}

// Flax's GRU: biases of the input for reset, update and new, of the hidden state for new only.
Tensors gru_bias_from_flax(std::span<const Tensor> in) {
  const Tensor nothing = blank_like(in[3]);
  return {concat_lazy(in.first(3), 0), concat_lazy(Tensors{nothing, nothing, in[3]}, 0)};
}

Tensors gru_bias_to_flax(std::span<const Tensor> in) {
  const Tensors input = split_last(in[0], 3);
  const Tensors hidden = split_last(in[1], 3);
  return {sum(input[0], hidden[0]), sum(input[1], hidden[1]), input[2], hidden[2]};
}

// Keras's GRU has update before reset. Swapping is its own inverse.
Tensors update_and_reset_swapped(std::span<const Tensor> in) {
  const Tensors gates = split_last(in[0], 3);
  return {concat_lazy(Tensors{gates[1], gates[0], gates[2]}, -1)};
}

Tensors gru_bias_from_keras(std::span<const Tensor> in) {  // [2, 3 * hidden]
  const Tensor swapped = update_and_reset_swapped(in)[0];
  if (swapped.rank() != 2 || swapped.shape()[0] != 2) {
    fail(Errc::shape_mismatch, "adapter",
         "a GRU's bias of shape {} was made with reset_after=False, which PyTorch's GRU cannot express",
         to_string(in[0].shape()));
  }
  return {swapped.index({std::int64_t{0}}), swapped.index({std::int64_t{1}})};
}

Tensors gru_bias_to_keras(std::span<const Tensor> in) {
  return update_and_reset_swapped(Tensors{concat_lazy(Tensors{in[0].unsqueeze(0), in[1].unsqueeze(0)}, 0)});
}

using enum LayerKind;

constexpr AdapterRow kInBoth[] = {
    {linear, {"weight"}, {"kernel"}, as_is, as_is, "renamed"},
    {conv, {"weight"}, {"kernel"}, conv_from, conv_to, "permuted"},
    {rms_norm, {"gamma"}, {"scale"}, as_is, as_is, "renamed"},
    {multihead_attention, {"query.weight"}, {"query.kernel"}, heads_joined_in, needs_heads, "heads joined"},
    {multihead_attention, {"key.weight"}, {"key.kernel"}, heads_joined_in, needs_heads, "heads joined"},
    {multihead_attention, {"value.weight"}, {"value.kernel"}, heads_joined_in, needs_heads, "heads joined"},
    {multihead_attention, {"query.bias"}, {"query.bias"}, flat, needs_heads, "heads joined"},
    {multihead_attention, {"key.bias"}, {"key.bias"}, flat, needs_heads, "heads joined"},
    {multihead_attention, {"value.bias"}, {"value.bias"}, flat, needs_heads, "heads joined"},
};

constexpr AdapterRow kFlaxAlone[] = {
    {conv_transpose, {"weight"}, {"kernel"}, flax_transpose_from, flax_transpose_to, "permuted and reversed"},
    {batch_norm, {"gamma"}, {"scale"}, as_is, as_is, "renamed"},
    {batch_norm, {"beta"}, {"bias"}, as_is, as_is, "renamed"},
    {batch_norm, {"running_mean"}, {"mean"}, as_is, as_is, "renamed"},
    {batch_norm, {"running_var"}, {"var"}, as_is, as_is, "renamed"},
    {layer_norm, {"gamma"}, {"scale"}, as_is, as_is, "renamed"},
    {layer_norm, {"beta"}, {"bias"}, as_is, as_is, "renamed"},
    {group_norm, {"gamma"}, {"scale"}, as_is, as_is, "renamed"},
    {group_norm, {"beta"}, {"bias"}, as_is, as_is, "renamed"},
    {instance_norm, {"gamma"}, {"scale"}, as_is, as_is, "renamed"},
    {instance_norm, {"beta"}, {"bias"}, as_is, as_is, "renamed"},
    {embedding, {"weight"}, {"embedding"}, as_is, as_is, "renamed"},
    {prelu, {"alpha"}, {"negative_slope"}, flat, scalar, "renamed"},
    {lstm,
     {"weight_ih_l0"},
     {"ii.kernel", "if.kernel", "ig.kernel", "io.kernel"},
     joined_in_last,
     split_in_last<4>,
     "gates joined"},
    {lstm,
     {"weight_hh_l0"},
     {"hi.kernel", "hf.kernel", "hg.kernel", "ho.kernel"},
     joined_in_last,
     split_in_last<4>,
     "gates joined"},
    {lstm,
     {"bias_ih_l0", "bias_hh_l0"},
     {"hi.bias", "hf.bias", "hg.bias", "ho.bias"},
     lstm_bias_from_hidden,
     lstm_bias_to_hidden,
     "gates joined"},
    {gru,
     {"weight_ih_l0"},
     {"ir.kernel", "iz.kernel", "in.kernel"},
     joined_in_last,
     split_in_last<3>,
     "gates joined"},
    {gru,
     {"weight_hh_l0"},
     {"hr.kernel", "hz.kernel", "hn.kernel"},
     joined_in_last,
     split_in_last<3>,
     "gates joined"},
    {gru,
     {"bias_ih_l0", "bias_hh_l0"},
     {"ir.bias", "iz.bias", "in.bias", "hn.bias"},
     gru_bias_from_flax,
     gru_bias_to_flax,
     "gates joined"},
    {multihead_attention, {"output.weight"}, {"out.kernel"}, heads_joined_out, needs_heads, "heads joined"},
    {multihead_attention, {"output.bias"}, {"out.bias"}, as_is, as_is, "renamed"},
};

constexpr AdapterRow kKerasAlone[] = {
    {conv_transpose, {"weight"}, {"kernel"}, conv_from, conv_to, "permuted"},
    {batch_norm, {"running_mean"}, {"moving_mean"}, as_is, as_is, "renamed"},
    {batch_norm, {"running_var"}, {"moving_variance"}, as_is, as_is, "renamed"},
    {embedding, {"weight"}, {"embeddings"}, as_is, as_is, "renamed"},
    {lstm, {"weight_ih_l0"}, {"lstm_cell.kernel"}, as_is, as_is, "renamed"},
    {lstm, {"weight_hh_l0"}, {"lstm_cell.recurrent_kernel"}, as_is, as_is, "renamed"},
    {lstm, {"bias_ih_l0", "bias_hh_l0"}, {"lstm_cell.bias"}, bias_from_one, bias_to_one, "one bias for both"},
    {lstm, {"weight_ih_l0"}, {"kernel"}, as_is, as_is, "renamed"},
    {lstm, {"weight_hh_l0"}, {"recurrent_kernel"}, as_is, as_is, "renamed"},
    {lstm, {"bias_ih_l0", "bias_hh_l0"}, {"bias"}, bias_from_one, bias_to_one, "one bias for both"},
    {gru,
     {"weight_ih_l0"},
     {"gru_cell.kernel"},
     update_and_reset_swapped,
     update_and_reset_swapped,
     "gates reordered"},
    {gru,
     {"weight_hh_l0"},
     {"gru_cell.recurrent_kernel"},
     update_and_reset_swapped,
     update_and_reset_swapped,
     "gates reordered"},
    {gru,
     {"bias_ih_l0", "bias_hh_l0"},
     {"gru_cell.bias"},
     gru_bias_from_keras,
     gru_bias_to_keras,
     "gates reordered"},
    {gru,
     {"weight_ih_l0"},
     {"kernel"},
     update_and_reset_swapped,
     update_and_reset_swapped,
     "gates reordered"},
    {gru,
     {"weight_hh_l0"},
     {"recurrent_kernel"},
     update_and_reset_swapped,
     update_and_reset_swapped,
     "gates reordered"},
    {gru, {"bias_ih_l0", "bias_hh_l0"}, {"bias"}, gru_bias_from_keras, gru_bias_to_keras, "gates reordered"},
    {rnn, {"weight_ih_l0"}, {"simple_rnn_cell.kernel"}, as_is, as_is, "renamed"},
    {rnn, {"weight_hh_l0"}, {"simple_rnn_cell.recurrent_kernel"}, as_is, as_is, "renamed"},
    {rnn,
     {"bias_ih_l0", "bias_hh_l0"},
     {"simple_rnn_cell.bias"},
     bias_from_one,
     bias_to_one,
     "one bias for both"},
    {rnn, {"weight_ih_l0"}, {"kernel"}, as_is, as_is, "renamed"},
    {rnn, {"weight_hh_l0"}, {"recurrent_kernel"}, as_is, as_is, "renamed"},
    {rnn, {"bias_ih_l0", "bias_hh_l0"}, {"bias"}, bias_from_one, bias_to_one, "one bias for both"},
    {multihead_attention,
     {"output.weight"},
     {"attention_output.kernel"},
     heads_joined_out,
     needs_heads,
     "heads joined"},
    {multihead_attention, {"output.bias"}, {"attention_output.bias"}, as_is, as_is, "renamed"},
};

template <std::size_t kCount>
consteval auto with_those_in_both(const AdapterRow (&alone)[kCount]) {
  std::array<AdapterRow, kCount + std::size(kInBoth)> rows{};
  std::copy(std::begin(alone), std::end(alone), rows.begin());
  std::copy(std::begin(kInBoth), std::end(kInBoth), rows.begin() + kCount);
  return rows;
}

constexpr auto kFlax = with_those_in_both(kFlaxAlone);
constexpr auto kKeras = with_those_in_both(kKerasAlone);

}  // namespace

std::span<const AdapterRow> flax_table() {
  return kFlax;
}

std::span<const AdapterRow> keras_table() {
  return kKeras;
}

std::string plain_flax_key(std::string_view key) {
  std::string plain(key);
  std::replace(plain.begin(), plain.end(), '/', '.');
  if (plain.ends_with(":0")) plain.resize(plain.size() - 2);
  for (const std::string_view collection : {"params.", "batch_stats."}) {
    if (plain.size() > collection.size() && plain.starts_with(collection)) plain.erase(0, collection.size());
  }
  return plain;
}

}  // namespace ballast
