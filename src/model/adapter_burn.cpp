// SPDX-License-Identifier: Apache-2.0
// Burn: layouts and names are the native ones, but a recurrent layer has one pair of Linear per gate (and one
// set of them per direction).
#include "model/adapter.h"

namespace ballast {
namespace {

using enum LayerKind;

constexpr AdapterRow kBurnRows[] = {
    {lstm,
     {"weight_ih_l0"},
     {"input_gate.input_transform.weight", "forget_gate.input_transform.weight",
      "cell_gate.input_transform.weight", "output_gate.input_transform.weight"},
     joined_in_last,
     split_in_last<4>,
     "gates joined"},
    {lstm,
     {"weight_hh_l0"},
     {"input_gate.hidden_transform.weight", "forget_gate.hidden_transform.weight",
      "cell_gate.hidden_transform.weight", "output_gate.hidden_transform.weight"},
     joined_in_last,
     split_in_last<4>,
     "gates joined"},
    {lstm,
     {"bias_ih_l0"},
     {"input_gate.input_transform.bias", "forget_gate.input_transform.bias", "cell_gate.input_transform.bias",
      "output_gate.input_transform.bias"},
     joined_in_last,
     split_in_last<4>,
     "gates joined"},
    {lstm,
     {"bias_hh_l0"},
     {"input_gate.hidden_transform.bias", "forget_gate.hidden_transform.bias",
      "cell_gate.hidden_transform.bias", "output_gate.hidden_transform.bias"},
     joined_in_last,
     split_in_last<4>,
     "gates joined"},
    {gru,
     {"weight_ih_l0"},
     {"reset_gate.input_transform.weight", "update_gate.input_transform.weight",
      "new_gate.input_transform.weight"},
     joined_in_last,
     split_in_last<3>,
     "gates joined"},
    {gru,
     {"weight_hh_l0"},
     {"reset_gate.hidden_transform.weight", "update_gate.hidden_transform.weight",
      "new_gate.hidden_transform.weight"},
     joined_in_last,
     split_in_last<3>,
     "gates joined"},
    {gru,
     {"bias_ih_l0"},
     {"reset_gate.input_transform.bias", "update_gate.input_transform.bias", "new_gate.input_transform.bias"},
     joined_in_last,
     split_in_last<3>,
     "gates joined"},
    {gru,
     {"bias_hh_l0"},
     {"reset_gate.hidden_transform.bias", "update_gate.hidden_transform.bias",
      "new_gate.hidden_transform.bias"},
     joined_in_last,
     split_in_last<3>,
     "gates joined"},
};

}  // namespace

std::span<const AdapterRow> burn_table() {
  return kBurnRows;
}

}  // namespace ballast
