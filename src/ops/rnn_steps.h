// SPDX-License-Identifier: Apache-2.0
// The steps of a recurrent layer, all of its directions at once: one parallel loop a step, in which a piece
// is some hidden values of one direction, from the sums of their gates to the values themselves. What a
// thread has summed it uses at once, and a team has one loop to start a step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ballast/tensor.h"
#include "ops/packed.h"

namespace ballast::ops {

enum class Cell : std::uint8_t { lstm, gru, rnn_tanh, rnn_relu };

[[nodiscard]] std::int64_t gates_of(Cell cell);

/// One layer's weights in one direction, as F32.
struct PreparedCell {
  Tensor weight_ih;  ///< dense; undefined when packed
  std::shared_ptr<const PackedMatrix> packed_ih;
  std::shared_ptr<const std::vector<PackedMatrix>> packed_hh;  ///< each gate's
  Tensor bias;          ///< of the input half: both biases, where they are only ever added
  Tensor bias_hh;       ///< GRU's, which its reset gate multiplies
  Tensor weight_hr;     ///< dense; of an LSTM with a projection
  std::int64_t hidden;  ///< of the cell
  std::int64_t output;  ///< of the layer: the projection's size when there is one
};

/// What one direction reads and writes. All tensors are F32 and dense.
struct Direction {
  std::shared_ptr<const PreparedCell> cell;
  Tensor gates;   ///< [steps, batch, gates * hidden]: the input's share; written over
  Tensor hidden;  ///< [batch, output]: the first state, in the end the last one
  Tensor state;   ///< [batch, hidden] of an LSTM's cells, likewise
  bool backward;
};

/// Runs all steps. `out` is [steps, batch, directions * output].
void run_steps(Cell cell, std::vector<Direction>& directions, Tensor& out);

}  // namespace ballast::ops
