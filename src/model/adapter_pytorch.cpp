// SPDX-License-Identifier: Apache-2.0
// PyTorch: Linear [out, in]; norms have weight and bias; recurrent weights [gates * hidden, in]; attention's
// three projections lie in one tensor.
#include "model/adapter.h"
#include "tensor/concat.h"

namespace ballast {
namespace {

// in_proj_weight [3 * embed, embed] ↔ query, key, value, each [embed, embed].
Tensors unpack_weights(std::span<const Tensor> in) {
  const Tensors parts = split_last(in[0].t(), 3);
  return {parts[0], parts[1], parts[2]};
}

Tensors pack_weights(std::span<const Tensor> in) {
  if (in[0].shape() != in[1].shape() || in[0].shape() != in[2].shape())
    return {};  // kdim or vdim: kept apart
  return {concat_lazy(transposed(in), 0)};
}

using enum LayerKind;

constexpr AdapterRow kPytorchRows[] = {
    {linear, {"weight"}, {"weight"}, transposed, transposed, "transposed"},
    {batch_norm, {"gamma"}, {"weight"}, as_is, as_is, "renamed"},
    {batch_norm, {"beta"}, {"bias"}, as_is, as_is, "renamed"},
    {layer_norm, {"gamma"}, {"weight"}, as_is, as_is, "renamed"},
    {layer_norm, {"beta"}, {"bias"}, as_is, as_is, "renamed"},
    {group_norm, {"gamma"}, {"weight"}, as_is, as_is, "renamed"},
    {group_norm, {"beta"}, {"bias"}, as_is, as_is, "renamed"},
    {instance_norm, {"gamma"}, {"weight"}, as_is, as_is, "renamed"},
    {instance_norm, {"beta"}, {"bias"}, as_is, as_is, "renamed"},
    {rms_norm, {"gamma"}, {"weight"}, as_is, as_is, "renamed"},
    {prelu, {"alpha"}, {"weight"}, as_is, as_is, "renamed"},
    {lstm, {"weight_ih_l*"}, {"weight_ih_l*"}, transposed, transposed, "transposed"},
    {lstm, {"weight_hh_l*"}, {"weight_hh_l*"}, transposed, transposed, "transposed"},
    {lstm, {"weight_hr_l*"}, {"weight_hr_l*"}, transposed, transposed, "transposed"},
    {lstm, {"weight_ih"}, {"weight_ih"}, transposed, transposed, "transposed"},
    {lstm, {"weight_hh"}, {"weight_hh"}, transposed, transposed, "transposed"},
    {gru, {"weight_ih"}, {"weight_ih"}, transposed, transposed, "transposed"},
    {gru, {"weight_hh"}, {"weight_hh"}, transposed, transposed, "transposed"},
    {rnn, {"weight_ih"}, {"weight_ih"}, transposed, transposed, "transposed"},
    {rnn, {"weight_hh"}, {"weight_hh"}, transposed, transposed, "transposed"},
    {gru, {"weight_ih_l*"}, {"weight_ih_l*"}, transposed, transposed, "transposed"},
    {gru, {"weight_hh_l*"}, {"weight_hh_l*"}, transposed, transposed, "transposed"},
    {rnn, {"weight_ih_l*"}, {"weight_ih_l*"}, transposed, transposed, "transposed"},
    {rnn, {"weight_hh_l*"}, {"weight_hh_l*"}, transposed, transposed, "transposed"},
    {multihead_attention,
     {"query.weight", "key.weight", "value.weight"},
     {"in_proj_weight"},
     unpack_weights,
     pack_weights,
     "one third of in_proj_weight, transposed"},
    {multihead_attention,
     {"query.bias", "key.bias", "value.bias"},
     {"in_proj_bias"},
     split_in_last<3>,
     joined_in_last,
     "one third of in_proj_bias"},
    {multihead_attention, {"query.weight"}, {"q_proj_weight"}, transposed, transposed, "transposed"},
    {multihead_attention, {"key.weight"}, {"k_proj_weight"}, transposed, transposed, "transposed"},
    {multihead_attention, {"value.weight"}, {"v_proj_weight"}, transposed, transposed, "transposed"},
    {multihead_attention, {"output.weight"}, {"out_proj.weight"}, transposed, transposed, "transposed"},
    {multihead_attention, {"output.bias"}, {"out_proj.bias"}, as_is, as_is, "renamed"},
    // Attention written with four Linear members, under the two usual sets of names.
    {multihead_attention, {"query.weight"}, {"query.weight"}, transposed, transposed, "transposed"},
    {multihead_attention, {"key.weight"}, {"key.weight"}, transposed, transposed, "transposed"},
    {multihead_attention, {"value.weight"}, {"value.weight"}, transposed, transposed, "transposed"},
    {multihead_attention, {"output.weight"}, {"output.weight"}, transposed, transposed, "transposed"},
    {multihead_attention, {"query.*"}, {"q_proj.*"}, transposed, transposed, "transposed"},
    {multihead_attention, {"key.*"}, {"k_proj.*"}, transposed, transposed, "transposed"},
    {multihead_attention, {"value.*"}, {"v_proj.*"}, transposed, transposed, "transposed"},
};

}  // namespace

std::span<const AdapterRow> pytorch_table() {
  return kPytorchRows;
}

}  // namespace ballast
