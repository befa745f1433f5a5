// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/rnn.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/matmul.h"
#include "ballast/detail/ops/movement.h"
#include "ops/args.h"
#include "ops/cache.h"
#include "ops/memory.h"
#include "ops/operations.h"
#include "ops/packed.h"
#include "ops/rnn_steps.h"
#include "tensor/resident.h"

namespace ballast {

using ops::Cell;
using ops::data_of;
using ops::form;
using ops::PreparedCell;

namespace {

const char* name_of(Cell cell) {
  return cell == Cell::lstm ? "lstm" : (cell == Cell::gru ? "gru" : "rnn");
}

Tensor both_biases(const char* op, const RecurrentWeights& w, std::int64_t size, bool apart) {
  Tensor ih = ops::parameter(op, "bias_ih", w.bias_ih, size);
  if (apart || !w.bias_hh.defined()) return ih;
  Tensor hh = ops::parameter(op, "bias_hh", w.bias_hh, size);
  return ih.defined() ? add(ih, hh) : hh;
}

// Every gate's columns of the weight for the state, in panels of their own.
std::vector<ops::PackedMatrix> packed_gates(const char* op, const Tensor& weight, std::int64_t gates) {
  const Tensor values = ops::floats(op, weight);
  const std::int64_t hidden = weight.shape()[1] / gates;
  std::vector<ops::PackedMatrix> made;
  for (std::int64_t gate = 0; gate < gates; ++gate)
    made.push_back(ops::packed(values.narrow(1, gate * hidden, hidden)));
  give_back_pages(weight);
  return made;
}

// What is packed is not kept as it was.
PreparedCell prepare(Cell cell, const RecurrentWeights& w, OpCache* cache) {
  const char* op = name_of(cell);
  const std::int64_t gates = ops::gates_of(cell);
  if (w.weight_ih.rank() != 2 || w.weight_hh.rank() != 2 || w.weight_ih.shape()[1] % gates != 0 ||
      w.weight_ih.shape()[1] != w.weight_hh.shape()[1]) {
    fail(Errc::shape_mismatch, op,
         "weight_ih {} and weight_hh {} are not [in, {} * hidden] and [hidden, {} * hidden]",
         form(w.weight_ih), form(w.weight_hh), gates, gates);
  }
  const std::int64_t hidden = w.weight_ih.shape()[1] / gates;
  const bool projected = w.weight_hr.defined();
  if (projected && (cell != Cell::lstm || w.weight_hr.rank() != 2 || w.weight_hr.shape()[0] != hidden)) {
    fail(Errc::shape_mismatch, op, "weight_hr {} is not [{}, projection] of an LSTM", form(w.weight_hr),
         hidden);
  }
  const std::int64_t output = projected ? w.weight_hr.shape()[1] : hidden;
  if (w.weight_hh.shape()[0] != output)
    fail(Errc::shape_mismatch, op, "weight_hh {} does not take the {} outputs of the layer",
         form(w.weight_hh), output);
  const bool gru = cell == Cell::gru;
  const bool packs = cache != nullptr && ops::has_fast_tiles() && w.weight_ih.numel() > 0;
  ops::CacheKey of_ih;
  of_ih.add(w.weight_ih);
  ops::CacheKey of_hh;
  of_hh.add(w.weight_hh);
  return {packs ? Tensor() : ops::floats(op, w.weight_ih),
          packs ? ops::cached_part<ops::PackedMatrix>(cache, of_ih,
                                                      [&] { return ops::packed_weight(op, w.weight_ih); })
                : nullptr,
          ops::cached_part<std::vector<ops::PackedMatrix>>(
              cache, of_hh, [&] { return packed_gates(op, w.weight_hh, gates); }),
          both_biases(op, w, gates * hidden, gru),
          gru ? ops::parameter(op, "bias_hh", w.bias_hh, gates * hidden) : Tensor(),
          projected ? ops::dense_floats(op, w.weight_hr) : Tensor(),
          hidden,
          output};
}

// The inputs' share of the gates in all steps is one product; the steps write over it.
Tensor input_gates(const PreparedCell& p, const Tensor& x) {
  if (!p.packed_ih) return linear(x, p.weight_ih, p.bias);
  Tensor gates = ops::new_floats({x.shape()[0], x.shape()[1], p.packed_ih->columns});
  ops::multiply(data_of(x), x.shape()[0] * x.shape()[1], *p.packed_ih, data_of(p.bias), {}, data_of(gates));
  return gates;
}

// State number `index` of [layers * directions, batch, size], or zeros; memory of its own.
Tensor initial_state(const char* op, const char* what, const Tensor& given, std::size_t index,
                     std::size_t count, std::int64_t batch, std::int64_t size) {
  if (!given.defined()) {
    Tensor zero = ops::new_floats({batch, size});
    std::fill_n(data_of(zero), zero.numel(), 0.0F);
    return zero;
  }
  const Shape expected = {static_cast<std::int64_t>(count), batch, size};
  if (!(given.shape() == expected))
    fail(Errc::shape_mismatch, op, "the initial {} state is {}, must be {}", what, form(given),
         to_string(expected));
  const Tensor one = ops::floats(op, given).index({static_cast<std::int64_t>(index)});
  return one.clone();
}

LstmResult run_layers(Cell cell, const Tensor& x, std::span<const RecurrentWeights> weights,
                      const Tensor& hidden, const Tensor& state, const RecurrentArgs& args) {
  const char* op = name_of(cell);
  const std::size_t directions = args.bidirectional ? 2 : 1;
  if (weights.empty() || weights.size() % directions != 0)
    fail(Errc::invalid_argument, op, "{} sets of weights for {} directions", weights.size(), directions);
  if (x.rank() != 3) fail(Errc::shape_mismatch, op, "{} is not [steps, batch, in], or [steps, in]", form(x));
  Tensor layer = ops::dense_floats(op, args.batch_first ? x.transpose(0, 1) : x);
  const std::int64_t steps = layer.shape()[0];
  const std::int64_t batch = layer.shape()[1];
  if (steps == 0) fail(Errc::shape_mismatch, op, "{} has no steps", form(x));
  std::vector<Tensor> last_hidden;
  std::vector<Tensor> last_cell;
  for (std::size_t i = 0; i < weights.size(); i += directions) {
    std::vector<ops::Direction> runs;
    for (std::size_t d = 0; d < directions; ++d) {
      const RecurrentWeights& w = weights[i + d];
      ops::CacheKey key;
      key.add(static_cast<std::int64_t>(i + d))
          .add(w.weight_ih)
          .add(w.weight_hh)
          .add(w.bias_ih)
          .add(w.bias_hh)
          .add(w.weight_hr);
      auto p = ops::cached<PreparedCell>(args.cache, key, [&] { return prepare(cell, w, args.cache); });
      if (layer.shape()[2] != w.weight_ih.shape()[0])
        fail(Errc::shape_mismatch, op, "input {} of layer {} with weight_ih {}", form(layer), i / directions,
             form(w.weight_ih));
      last_hidden.push_back(initial_state(op, "hidden", hidden, i + d, weights.size(), batch, p->output));
      if (cell == Cell::lstm)
        last_cell.push_back(initial_state(op, "cell", state, i + d, weights.size(), batch, p->hidden));
      Tensor gates = input_gates(*p, layer);
      runs.push_back({std::move(p), std::move(gates), last_hidden.back(),
                      cell == Cell::lstm ? last_cell.back() : Tensor(), d == 1});
    }
    // All directions have the same sizes: forms::lstm and its like.
    const std::int64_t width = runs.front().cell->output * static_cast<std::int64_t>(directions);
    Tensor out = ops::new_floats({steps, batch, width});
    if (batch > 0) ops::run_steps(cell, runs, out);
    layer = out;
  }
  if (args.batch_first) layer = layer.transpose(0, 1).contiguous();
  return {layer.to(x.dtype()), stack(last_hidden).to(x.dtype()),
          cell == Cell::lstm ? stack(last_cell).to(x.dtype()) : Tensor()};
}

template <Cell cell>
std::array<Tensor, 3> recurrent_cpu(const Operation&, const Tensor& x, const Tensor& hidden,
                                    const Tensor& state, const ops::RecurrentSets& weights,
                                    bool bidirectional, bool batch_first, bool relu, OpCache* cache) {
  LstmResult result =
      run_layers(relu ? Cell::rnn_relu : cell, x, weights.sets, hidden, state,
                 {.bidirectional = bidirectional, .batch_first = batch_first, .cache = cache});
  return {std::move(result.output), std::move(result.hidden), std::move(result.cell)};
}

}  // namespace

// Three results, the last of them undefined where the cells have no state of their own.
namespace operations {

constexpr Operation recurrent(const char* name, FormRule form) {
  return about(name, {"x", "hidden?", "cell?", "weights?"}, {"bidirectional", "batch_first", "relu"}, form);
}

constinit const Recurrent lstm = {recurrent("lstm", forms::lstm), {recurrent_cpu<Cell::lstm>}};
constinit const Recurrent gru = {recurrent("gru", forms::gru), {recurrent_cpu<Cell::gru>}};
constinit const Recurrent rnn = {recurrent("rnn", forms::rnn), {recurrent_cpu<Cell::rnn_tanh>}};

}  // namespace operations

namespace {

// [steps, in] is a batch of one.
LstmResult run_any(Cell cell, const Tensor& x, std::span<const RecurrentWeights> weights,
                   const Tensor& hidden, const Tensor& state, const RecurrentArgs& args) {
  if (x.rank() != 2) {
    const operations::Recurrent& row =
        cell == Cell::lstm ? operations::lstm : (cell == Cell::gru ? operations::gru : operations::rnn);
    auto [output, last, state_at_end] = run(row, x, hidden, state, {weights}, args.bidirectional,
                                            args.batch_first, cell == Cell::rnn_relu, args.cache);
    return {std::move(output), std::move(last), std::move(state_at_end)};
  }
  const auto raised = [](const Tensor& s) { return s.defined() && s.rank() == 2 ? s.unsqueeze(1) : s; };
  RecurrentArgs inner = args;
  inner.batch_first = false;
  const LstmResult result = run_any(cell, x.unsqueeze(1), weights, raised(hidden), raised(state), inner);
  return {result.output.squeeze(1), result.hidden.squeeze(1),
          result.cell.defined() ? result.cell.squeeze(1) : Tensor()};
}

}  // namespace

LstmResult lstm(const Tensor& x, std::span<const RecurrentWeights> weights, const Tensor& hidden,
                const Tensor& cell, const RecurrentArgs& args) {
  return run_any(Cell::lstm, x, weights, hidden, cell, args);
}

RecurrentResult gru(const Tensor& x, std::span<const RecurrentWeights> weights, const Tensor& hidden,
                    const RecurrentArgs& args) {
  LstmResult result = run_any(Cell::gru, x, weights, hidden, {}, args);
  return {std::move(result.output), std::move(result.hidden)};
}

RecurrentResult rnn(const Tensor& x, std::span<const RecurrentWeights> weights, const Tensor& hidden,
                    RnnNonlinearity nonlinearity, const RecurrentArgs& args) {
  LstmResult result = run_any(nonlinearity == RnnNonlinearity::tanh ? Cell::rnn_tanh : Cell::rnn_relu, x,
                              weights, hidden, {}, args);
  return {std::move(result.output), std::move(result.hidden)};
}

}  // namespace ballast
