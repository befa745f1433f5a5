// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/rnn.h"

#include "nn/parameters.h"

namespace ballast::nn {
namespace detail {

std::vector<RecurrentCell> make_cells(const RecurrentSizes& sizes) {
  require_positive("recurrent layer", "the number of layers", sizes.layers);
  const std::int64_t directions = sizes.bidirectional ? 2 : 1;
  const std::int64_t output = sizes.projection > 0 ? sizes.projection : sizes.hidden;
  const std::int64_t gates = sizes.gates * sizes.hidden;
  std::vector<RecurrentCell> cells;
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::int64_t input = layer == 0 ? sizes.input : output * directions;
    RecurrentCell cell{.weight_ih = parameter({input, gates}),
                       .weight_hh = parameter({output, gates}),
                       .bias_ih = {},
                       .bias_hh = {},
                       .weight_hr = {}};
    if (sizes.bias) cell.bias_ih = cell.bias_hh = parameter({gates});
    if (sizes.projection > 0) cell.weight_hr = parameter({sizes.hidden, sizes.projection});
    cells.insert(cells.end(), static_cast<std::size_t>(directions), cell);
  }
  return cells;
}

std::string cell_suffix(std::size_t cell, bool bidirectional) {
  if (!bidirectional) return "_l" + std::to_string(cell);
  return "_l" + std::to_string(cell / 2) + (cell % 2 == 1 ? "_reverse" : "");
}

}  // namespace detail

namespace {

// Cells, once the options are such as this layer knows.
std::vector<RecurrentCell> make_known(const std::string& layer, const RecurrentOptions& options,
                                      const detail::RecurrentSizes& sizes) {
  if (options.proj_size != 0 && layer != "LSTM") fail(Errc::invalid_argument, layer, "proj_size is for LSTM");
  if (options.nonlinearity != RNNNonlinearity::tanh && layer != "RNN")
    fail(Errc::invalid_argument, layer, "nonlinearity is for RNN");
  return detail::make_cells(sizes);
}

}  // namespace

LSTM::LSTM(std::int64_t input, std::int64_t hidden, const RecurrentOptions& lstm_options)
    : input_size(input),
      hidden_size(hidden),
      options(lstm_options),
      cells(make_known(
          "LSTM", options,
          {input, hidden, 4, options.num_layers, options.proj_size, options.bias, options.bidirectional})) {
  if (options.proj_size < 0 || options.proj_size >= hidden) {
    fail(Errc::invalid_argument, "LSTM", "a projection to {} must be smaller than the hidden size {}",
         options.proj_size, hidden);
  }
}

LstmResult LSTM::forward(const Tensor& x, const Tensor& hidden, const Tensor& cell) const {
  return place.run("LSTM", [&] {
    return lstm(
        x, cells, hidden, cell,
        {.bidirectional = options.bidirectional, .batch_first = options.batch_first, .cache = &place.cache});
  });
}

GRU::GRU(std::int64_t input, std::int64_t hidden, const RecurrentOptions& gru_options)
    : input_size(input),
      hidden_size(hidden),
      options(gru_options),
      cells(make_known("GRU", options,
                       {input, hidden, 3, options.num_layers, 0, options.bias, options.bidirectional})) {}

RecurrentResult GRU::forward(const Tensor& x, const Tensor& hidden) const {
  return place.run("GRU", [&] {
    return gru(
        x, cells, hidden,
        {.bidirectional = options.bidirectional, .batch_first = options.batch_first, .cache = &place.cache});
  });
}

RNN::RNN(std::int64_t input, std::int64_t hidden, const RecurrentOptions& rnn_options)
    : input_size(input),
      hidden_size(hidden),
      options(rnn_options),
      cells(make_known("RNN", options,
                       {input, hidden, 1, options.num_layers, 0, options.bias, options.bidirectional})) {}

RecurrentResult RNN::forward(const Tensor& x, const Tensor& hidden) const {
  return place.run("RNN", [&] {
    return rnn(
        x, cells, hidden, options.nonlinearity,
        {.bidirectional = options.bidirectional, .batch_first = options.batch_first, .cache = &place.cache});
  });
}

namespace {

RecurrentCell one_cell(const std::string& layer, std::int64_t input, std::int64_t hidden, std::int64_t gates,
                       const RecurrentOptions& options) {
  if (options.nonlinearity != RNNNonlinearity::tanh && layer != "RNNCell")
    fail(Errc::invalid_argument, layer, "nonlinearity is for RNNCell");
  if (options.num_layers != 1 || options.batch_first || options.dropout != 0 || options.bidirectional ||
      options.proj_size != 0) {
    fail(Errc::invalid_argument, layer,
         "num_layers, batch_first, dropout, bidirectional and proj_size are for whole sequences");
  }
  return detail::make_cells({input, hidden, gates, 1, 0, options.bias, false}).front();
}

// A state of one layer.
Tensor layered(const Tensor& state) {
  return state.defined() ? state.unsqueeze(0) : state;
}

void require_step(const char* layer, const Tensor& x) {
  if (x.rank() != 1 && x.rank() != 2)
    fail(Errc::shape_mismatch, layer, "x is {}: [batch, features] or [features] is wanted",
         to_string(x.shape()));
}

}  // namespace

LSTMCell::LSTMCell(std::int64_t input, std::int64_t hidden, const RecurrentOptions& cell_options)
    : input_size(input),
      hidden_size(hidden),
      options(cell_options),
      weights(one_cell("LSTMCell", input, hidden, 4, options)) {}

// A sequence of one step.
LSTMState LSTMCell::forward(const Tensor& x, const Tensor& hidden, const Tensor& cell) const {
  return place.run("LSTMCell", [&]() -> LSTMState {
    require_step("LSTMCell", x);
    const LstmResult result =
        lstm(x.unsqueeze(0), {&weights, 1}, layered(hidden), layered(cell), {.cache = &place.cache});
    return {result.hidden.squeeze(0), result.cell.squeeze(0)};
  });
}

GRUCell::GRUCell(std::int64_t input, std::int64_t hidden, const RecurrentOptions& cell_options)
    : input_size(input),
      hidden_size(hidden),
      options(cell_options),
      weights(one_cell("GRUCell", input, hidden, 3, options)) {}

Tensor GRUCell::forward(const Tensor& x, const Tensor& hidden) const {
  return place.run("GRUCell", [&] {
    require_step("GRUCell", x);
    return gru(x.unsqueeze(0), {&weights, 1}, layered(hidden), {.cache = &place.cache}).hidden.squeeze(0);
  });
}

RNNCell::RNNCell(std::int64_t input, std::int64_t hidden, const RecurrentOptions& cell_options)
    : input_size(input),
      hidden_size(hidden),
      options(cell_options),
      weights(one_cell("RNNCell", input, hidden, 1, options)) {}

Tensor RNNCell::forward(const Tensor& x, const Tensor& hidden) const {
  return place.run("RNNCell", [&] {
    require_step("RNNCell", x);
    return rnn(x.unsqueeze(0), {&weights, 1}, layered(hidden), options.nonlinearity, {.cache = &place.cache})
        .hidden.squeeze(0);
  });
}

}  // namespace ballast::nn
