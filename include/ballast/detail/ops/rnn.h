// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. Weights are [in, gates * hidden], gates side by side in PyTorch's order: LSTM input,
// forget, cell, output; GRU reset, update, new.
//
// Gives: the last layer's outputs of all steps, and the last state of every layer, in x's dtype. Throws:
// Errc::shape_mismatch for an x of other than two or three dimensions, without steps, and weights or states
// that do not fit; bad_dtype for F64 and integers; invalid_argument unless there is a set of weights for each
// layer and direction.
#pragma once

#include <cstdint>
#include <span>

#include "ballast/detail/ops/cache.h"
#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// One layer in one direction.
struct RecurrentWeights {
  Tensor weight_ih;       ///< [in, gates * hidden]
  Tensor weight_hh;       ///< [hidden or projection, gates * hidden]
  Tensor bias_ih = {};    ///< [gates * hidden]
  Tensor bias_hh = {};    ///< [gates * hidden]
  Tensor weight_hr = {};  ///< [hidden, projection]: LSTM only
};

struct RecurrentArgs {
  bool bidirectional = false;
  bool batch_first = false;
  OpCache* cache = nullptr;
};

/// What lstm() gives.
struct LstmResult {
  Tensor output;  ///< [steps, batch, directions * hidden], or batch first
  Tensor hidden;  ///< [layers * directions, batch, hidden]
  Tensor cell;    ///< the same
};

/// What gru() and rnn() give.
struct RecurrentResult {
  Tensor output;  ///< as LstmResult's
  Tensor hidden;  ///< as LstmResult's
};

/// What rnn() does with the sums.
enum class RnnNonlinearity : std::uint8_t { tanh, relu };

/// x is [steps, batch, in], [batch, steps, in] with batch_first, or [steps, in]. `weights`: layer by layer,
/// forward before backward. Undefined initial states are zeros.
[[nodiscard]] LstmResult lstm(const Tensor& x, std::span<const RecurrentWeights> weights,
                              const Tensor& hidden = {}, const Tensor& cell = {},
                              const RecurrentArgs& args = {});
[[nodiscard]] RecurrentResult gru(const Tensor& x, std::span<const RecurrentWeights> weights,
                                  const Tensor& hidden = {}, const RecurrentArgs& args = {});
[[nodiscard]] RecurrentResult rnn(const Tensor& x, std::span<const RecurrentWeights> weights,
                                  const Tensor& hidden = {},
                                  RnnNonlinearity nonlinearity = RnnNonlinearity::tanh,
                                  const RecurrentArgs& args = {});

}  // namespace ballast

#pragma GCC visibility pop
