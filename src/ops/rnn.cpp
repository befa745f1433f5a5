// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/rnn.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/matmul.h"
#include "ballast/detail/ops/movement.h"
#include "ops/args.h"
#include "ops/cache.h"
#include "ops/elementwise.h"
#include "ops/gemm.h"
#include "ops/kernels.h"
#include "ops/operations.h"
#include "ops/packed.h"

namespace ballast {

using ops::data_of;
using ops::form;
using ops::kernels;

namespace {

enum class Cell : std::uint8_t { lstm, gru, rnn_tanh, rnn_relu };

std::int64_t gates_of(Cell cell) {
  return cell == Cell::lstm ? 4 : (cell == Cell::gru ? 3 : 1);
}

const char* name_of(Cell cell) {
  return cell == Cell::lstm ? "lstm" : (cell == Cell::gru ? "gru" : "rnn");
}

// One layer's weights in one direction, as F32 and dense.
struct PreparedCell {
  Tensor weight_ih;
  Tensor weight_hh;
  Tensor bias;     // of the input half: both biases, where they are only ever added
  Tensor bias_hh;  // GRU's, which its reset gate multiplies
  Tensor weight_hr;
  std::shared_ptr<const ops::PackedMatrix> packed_ih;  // the same weights for many rows
  std::shared_ptr<const ops::PackedMatrix> packed_hh;
  std::int64_t hidden;  // of the cell
  std::int64_t output;  // of the layer: the projection's size when there is one
};

Tensor both_biases(const char* op, const RecurrentWeights& w, std::int64_t size, bool apart) {
  Tensor ih = ops::parameter(op, "bias_ih", w.bias_ih, size);
  if (apart || !w.bias_hh.defined()) return ih;
  Tensor hh = ops::parameter(op, "bias_hh", w.bias_hh, size);
  return ih.defined() ? add(ih, hh) : hh;
}

// Samples from which a step is worth tiles: fewer read the weight once whatever is done.
constexpr std::int64_t kManySamples = 4;

// The same for few samples and for many.
std::shared_ptr<const ops::PackedMatrix> packed_part(const char* op, OpCache* cache, const Tensor& weight) {
  ops::CacheKey key;
  key.add(weight);
  return ops::cached_part<ops::PackedMatrix>(cache, key, [&] { return ops::packed_weight(op, weight); });
}

// What is packed is not kept as it was.
PreparedCell prepare(Cell cell, const RecurrentWeights& w, std::int64_t batch, OpCache* cache) {
  const char* op = name_of(cell);
  const std::int64_t gates = gates_of(cell);
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
  const bool packs =
      cache != nullptr && ops::has_fast_tiles() && w.weight_ih.numel() > 0 && w.weight_hh.numel() > 0;
  const bool packs_hh = packs && batch >= kManySamples;
  return {packs ? Tensor() : ops::floats(op, w.weight_ih),
          packs_hh ? Tensor() : ops::dense_floats(op, w.weight_hh),
          both_biases(op, w, gates * hidden, gru),
          gru ? ops::parameter(op, "bias_hh", w.bias_hh, gates * hidden) : Tensor(),
          projected ? ops::dense_floats(op, w.weight_hr) : Tensor(),
          packs ? packed_part(op, cache, w.weight_ih) : nullptr,
          packs_hh ? packed_part(op, cache, w.weight_hh) : nullptr,
          hidden,
          output};
}

// The inputs' share of the gates in all steps is one product.
Tensor input_gates(const PreparedCell& p, const Tensor& x) {
  if (!p.packed_ih) return linear(x, p.weight_ih, p.bias);
  Tensor gates = ops::new_floats({x.shape()[0], x.shape()[1], p.packed_ih->columns});
  ops::multiply(data_of(x), x.shape()[0] * x.shape()[1], *p.packed_ih, data_of(p.bias), {}, data_of(gates));
  return gates;
}

struct States {
  Tensor hidden;  // [batch, output]
  Tensor cell;    // [batch, hidden]
};

// From the gates' sums to the new states, sample by sample.
void step(Cell cell, const PreparedCell& p, float* gates, float* recurrent, float* hidden, float* state,
          std::int64_t batch) {
  const std::int64_t width = gates_of(cell) * p.hidden;
  const auto sum = kernels().binary[static_cast<std::size_t>(ops::Binary::add)];
  for (std::int64_t b = 0; b < batch; ++b) {
    float* own = gates + b * width;
    float* back = recurrent + b * width;
    float* h = hidden + b * p.hidden;
    if (cell == Cell::gru) {
      if (p.bias_hh.defined()) sum(back, 1, data_of(p.bias_hh), 1, back, width);
      kernels().gru_gates(own, back, h, p.hidden);
      continue;
    }
    sum(own, 1, back, 1, own, width);
    if (cell == Cell::lstm)
      kernels().lstm_gates(own, state + b * p.hidden, h, p.hidden);
    else
      kernels().unary[static_cast<std::size_t>(cell == Cell::rnn_tanh ? ops::Unary::tanh : ops::Unary::relu)](
          own, h, p.hidden, 0, 0);
  }
}

// x [steps, batch, in] → out [steps, batch, output] in columns [offset, offset + output) of rows of `width`.
void run_direction(Cell cell, const PreparedCell& p, const Tensor& x, bool backward, States& states,
                   Tensor& out, std::int64_t offset) {
  const std::int64_t steps = x.shape()[0];
  const std::int64_t batch = x.shape()[1];
  const std::int64_t width = gates_of(cell) * p.hidden;
  Tensor gates = input_gates(p, x);
  Tensor recurrent = ops::new_floats({batch, width});
  Tensor projected = p.weight_hr.defined() ? ops::new_floats({batch, p.hidden}) : Tensor();
  float* hidden = data_of(states.hidden);
  float* working = projected.defined() ? data_of(projected) : hidden;
  float* state = states.cell.defined() ? data_of(states.cell) : nullptr;
  const std::int64_t row = out.shape()[2];
  float* to = data_of(out);
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = backward ? steps - 1 - i : i;
    if (p.packed_hh)
      ops::multiply(hidden, batch, *p.packed_hh, nullptr, {}, data_of(recurrent));
    else
      ops::gemm({hidden, batch, p.output, p.output, 1}, ops::matrix_of(p.weight_hh), data_of(recurrent),
                width);
    step(cell, p, data_of(gates) + t * batch * width, data_of(recurrent), working, state, batch);
    if (projected.defined())
      ops::gemm({working, batch, p.hidden, p.hidden, 1}, ops::matrix_of(p.weight_hr), hidden, p.output);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::memcpy(to + (t * batch + b) * row + offset, hidden + b * p.output,
                  static_cast<std::size_t>(p.output) * sizeof(float));
    }
  }
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
    Tensor out;
    for (std::size_t d = 0; d < directions; ++d) {
      const RecurrentWeights& w = weights[i + d];
      ops::CacheKey key;
      key.add(static_cast<std::int64_t>(i + d))
          .add(w.weight_ih)
          .add(w.weight_hh)
          .add(w.bias_ih)
          .add(w.bias_hh)
          .add(w.weight_hr)
          .add(batch >= kManySamples ? 1 : 0);
      const auto p =
          ops::cached<PreparedCell>(args.cache, key, [&] { return prepare(cell, w, batch, args.cache); });
      if (layer.shape()[2] != w.weight_ih.shape()[0])
        fail(Errc::shape_mismatch, op, "input {} of layer {} with weight_ih {}", form(layer), i / directions,
             form(w.weight_ih));
      if (d == 0) out = ops::new_floats({steps, batch, p->output * static_cast<std::int64_t>(directions)});
      States states{initial_state(op, "hidden", hidden, i + d, weights.size(), batch, p->output),
                    cell == Cell::lstm
                        ? initial_state(op, "cell", state, i + d, weights.size(), batch, p->hidden)
                        : Tensor()};
      if (batch > 0)
        run_direction(cell, *p, layer, d == 1, states, out, static_cast<std::int64_t>(d) * p->output);
      last_hidden.push_back(states.hidden);
      if (cell == Cell::lstm) last_cell.push_back(states.cell);
    }
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
