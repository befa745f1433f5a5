// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, with PyTorch's parameter names (weight_ih_l0, weight_hh_l0_reverse, …) and, like Linear,
// weights stored [in, out]. Gates lie side by side in PyTorch's order: LSTM input, forget, cell, output; GRU
// reset, update, new.
//
// Takes x [steps, batch, in], [batch, steps, in] with batch_first, or [steps, in]; of cells [batch, in] or
// [in]. Undefined states are zeros. Gives: forward() outputs of all steps, in x's order of dimensions, and
// the last states [layers * directions, batch, hidden]; of cells the new state [batch, hidden]. Throws:
// constructors Errc::invalid_argument for fewer than one layer, a projection that is not smaller than the
// hidden size, and options of another layer; forward() Errc::shape_mismatch for an x or a state that does not
// fit, bad_dtype for F64 and integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ballast/detail/nn/place.h"
#include "ballast/detail/ops/rnn.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

using RecurrentCell = RecurrentWeights;  ///< one layer in one direction

using RNNNonlinearity = RnnNonlinearity;  ///< PyTorch's "tanh" and "relu"

/// Of all recurrent layers and cells; what one of them does not know is Errc::invalid_argument when it is
/// made. A cell knows bias, and RNNCell its nonlinearity.
struct RecurrentOptions {
  std::int64_t num_layers = 1;
  RNNNonlinearity nonlinearity = RNNNonlinearity::tanh;  ///< RNN, RNNCell
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  std::int64_t proj_size = 0;  ///< LSTM
};

namespace detail {

struct RecurrentSizes {
  std::int64_t input;
  std::int64_t hidden;
  std::int64_t gates;
  std::int64_t layers;
  std::int64_t projection;
  bool bias;
  bool bidirectional;
};

[[nodiscard]] std::vector<RecurrentCell> make_cells(const RecurrentSizes& sizes);
/// "_l1_reverse" for the fourth cell of a bidirectional layer.
[[nodiscard]] std::string cell_suffix(std::size_t cell, bool bidirectional);

constexpr void visit_cells(auto& cells, bool bias, bool bidirectional, bool projected, auto&& visit) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string suffix = cell_suffix(i, bidirectional);
    visit("weight_ih" + suffix, cells[i].weight_ih);
    visit("weight_hh" + suffix, cells[i].weight_hh);
    if (bias) visit("bias_ih" + suffix, cells[i].bias_ih);
    if (bias) visit("bias_hh" + suffix, cells[i].bias_hh);
    if (projected) visit("weight_hr" + suffix, cells[i].weight_hr);
  }
}

}  // namespace detail

struct LSTM {
  static constexpr LayerKind kind = LayerKind::lstm;
  std::int64_t input_size;
  std::int64_t hidden_size;
  RecurrentOptions options;
  std::vector<RecurrentCell> cells;  ///< layer by layer, forward before backward
  Place place;

  LSTM(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});

  /// x [steps, batch, in] (or batch first, or without batch); undefined initial states are zeros.
  [[nodiscard]] LstmResult forward(const Tensor& x, const Tensor& hidden = {}, const Tensor& cell = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static void visit_fields(auto& self, auto&& visit) {
    detail::visit_cells(self.cells, self.options.bias, self.options.bidirectional, self.options.proj_size > 0,
                        visit);
  }
};

struct GRU {
  static constexpr LayerKind kind = LayerKind::gru;
  std::int64_t input_size;
  std::int64_t hidden_size;
  RecurrentOptions options;
  std::vector<RecurrentCell> cells;  ///< layer by layer, forward before backward
  Place place;

  GRU(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});

  [[nodiscard]] RecurrentResult forward(const Tensor& x, const Tensor& hidden = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static void visit_fields(auto& self, auto&& visit) {
    detail::visit_cells(self.cells, self.options.bias, self.options.bidirectional, false, visit);
  }
};

struct RNN {
  static constexpr LayerKind kind = LayerKind::rnn;
  std::int64_t input_size;
  std::int64_t hidden_size;
  RecurrentOptions options;
  std::vector<RecurrentCell> cells;  ///< layer by layer, forward before backward
  Place place;

  RNN(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});

  [[nodiscard]] RecurrentResult forward(const Tensor& x, const Tensor& hidden = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static void visit_fields(auto& self, auto&& visit) {
    detail::visit_cells(self.cells, self.options.bias, self.options.bidirectional, false, visit);
  }
};

namespace detail {

constexpr void visit_cell(auto& self, auto&& visit) {
  visit("weight_ih", self.weights.weight_ih);
  visit("weight_hh", self.weights.weight_hh);
  if (self.options.bias) visit("bias_ih", self.weights.bias_ih);
  if (self.options.bias) visit("bias_hh", self.weights.bias_hh);
}

}  // namespace detail

/// What LSTMCell gives.
struct LSTMState {
  Tensor hidden;  ///< [batch, hidden], or without batch
  Tensor cell;    ///< the same
};

/// One step. x [batch, in] (or [in]); undefined states are zeros.
struct LSTMCell {
  static constexpr LayerKind kind = LayerKind::lstm;
  std::int64_t input_size;
  std::int64_t hidden_size;
  RecurrentOptions options;
  RecurrentCell weights;  ///< [in, gates * hidden], as in the layers
  Place place;

  LSTMCell(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});

  [[nodiscard]] LSTMState forward(const Tensor& x, const Tensor& hidden = {}, const Tensor& cell = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) { detail::visit_cell(self, visit); }
};

struct GRUCell {
  static constexpr LayerKind kind = LayerKind::gru;
  std::int64_t input_size;
  std::int64_t hidden_size;
  RecurrentOptions options;
  RecurrentCell weights;  ///< [in, gates * hidden], as in the layers
  Place place;

  GRUCell(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& hidden = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) { detail::visit_cell(self, visit); }
};

struct RNNCell {
  static constexpr LayerKind kind = LayerKind::rnn;
  std::int64_t input_size;
  std::int64_t hidden_size;
  RecurrentOptions options;
  RecurrentCell weights;  ///< [in, gates * hidden], as in the layers
  Place place;

  RNNCell(std::int64_t input, std::int64_t hidden, const RecurrentOptions& options = {});

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& hidden = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) { detail::visit_cell(self, visit); }
};

}  // namespace ballast::nn

#pragma GCC visibility pop
