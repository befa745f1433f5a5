// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN: gates in ONNX's order, directions side by side, layer after layer.

#include "ballast/detail/ops/create.h"
#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

// Inputs of the recorded operation: x, hidden, cell, then five for each set of weights.
constexpr std::size_t kFirstWeights = 3;
constexpr std::size_t kEach = 5;

struct Cell {
  const char* op;
  std::vector<std::int64_t> order;  // of PyTorch's gates
  Attributes attributes;
};

class Recurrent {
 public:
  Recurrent(const Call& call, Cell cell)
      : call_(call),
        to_(call.to),
        cell_(std::move(cell)),
        directions_(call.number("bidirectional") != 0 ? 2 : 1),
        layers_((call.node.inputs.size() - kFirstWeights) / kEach / directions_),
        hidden_(call.value(kFirstWeights).shape[1] / static_cast<std::int64_t>(cell_.order.size())) {}

  void run() {
    const bool batch_first = call_.number("batch_first") != 0;
    const Dims swap = {1, 0, 2};
    std::string x = call_.floats(0);
    if (batch_first) x = to_.node("Transpose", {x}, {{"perm", swap}});
    for (std::size_t layer = 0; layer < layers_; ++layer) x = run_layer(layer, x);
    if (batch_first) x = to_.node("Transpose", {x}, {{"perm", swap}});
    call_.result(x, DType::f32, 0);
    call_.result(joined(last_hidden_), DType::f32, 1);
    if (call_.node.outputs[2] >= 0) call_.result(joined(last_cell_), DType::f32, 2);
  }

 private:
  [[nodiscard]] std::size_t input(std::size_t layer, std::size_t direction, std::size_t which) const {
    return kFirstWeights + (layer * directions_ + direction) * kEach + which;
  }

  [[nodiscard]] std::string joined(const std::vector<std::string>& parts) const {
    return parts.size() == 1 ? parts[0] : to_.node("Concat", parts, {{"axis", std::int64_t{0}}});
  }

  // Rows of gates in ONNX's order.
  [[nodiscard]] std::string reordered(const std::string& rows) const {
    if (cell_.order.size() == 1) return rows;
    std::vector<std::string> gates;
    for (const std::int64_t gate : cell_.order)
      gates.push_back(to_.slice(rows, 0, gate * hidden_, (gate + 1) * hidden_));
    return joined(gates);
  }

  // [directions, gates * hidden, in]
  [[nodiscard]] std::string weights(std::size_t layer, std::size_t which) const {
    std::vector<std::string> all;
    for (std::size_t d = 0; d < directions_; ++d) {
      const std::size_t i = input(layer, d, which);
      const std::string rows =
          to_.cast(to_.transposed(call_.node.inputs[i]), call_.value(i).dtype, DType::f32);
      all.push_back(to_.unsqueeze(reordered(rows), {0}));
    }
    return joined(all);
  }

  // [directions, 2 * gates * hidden]; "" when no direction has one.
  [[nodiscard]] std::string biases(std::size_t layer) const {
    std::vector<std::string> all;
    bool some = false;
    for (std::size_t d = 0; d < directions_; ++d) {
      std::vector<std::string> both;
      for (const std::size_t which : {2U, 3U}) {
        const std::size_t i = input(layer, d, which);
        some = some || call_.has(i);
        const std::int64_t size = hidden_ * static_cast<std::int64_t>(cell_.order.size());
        both.push_back(call_.has(i) ? reordered(call_.floats(i)) : to_.constant(zeros({size})));
      }
      all.push_back(to_.unsqueeze(joined(both), {0}));
    }
    return some ? joined(all) : std::string();
  }

  [[nodiscard]] std::string state(std::size_t layer, std::size_t i) const {
    if (!call_.has(i)) return {};
    const auto first = static_cast<std::int64_t>(layer * directions_);
    if (layers_ == 1) return call_.floats(i);
    return to_.slice(call_.floats(i), 0, first, first + static_cast<std::int64_t>(directions_));
  }

  // [steps, batch, in] → [steps, batch, directions * hidden]
  std::string run_layer(std::size_t layer, const std::string& x) {
    for (std::size_t d = 0; d < directions_; ++d)
      if (call_.has(input(layer, d, 4))) call_.refuse("ONNX's LSTM has no projection");
    const bool lstm = std::string_view(cell_.op) == "LSTM";
    Attributes attributes = cell_.attributes;
    attributes.push_back({"hidden_size", hidden_});
    if (directions_ == 2) attributes.push_back({"direction", std::string("bidirectional")});
    if (call_.node.operation == &operations::rnn && call_.number("relu") != 0)
      attributes.push_back({"activations", std::vector<std::string>(directions_, "Relu")});
    const std::vector<std::string> results =
        to_.nodes(cell_.op,
                  {x, weights(layer, 0), weights(layer, 1), biases(layer), "", state(layer, 1),
                   lstm ? state(layer, 2) : std::string()},
                  attributes, lstm ? 3 : 2);
    last_hidden_.push_back(results[1]);
    if (lstm) last_cell_.push_back(results[2]);
    if (directions_ == 1) return to_.squeeze(results[0], {1});
    const std::string beside = to_.node("Transpose", {results[0]}, {{"perm", Dims{0, 2, 1, 3}}});
    return to_.reshape(beside, {0, 0, static_cast<std::int64_t>(directions_) * hidden_});
  }

  const Call& call_;
  Lowering& to_;
  Cell cell_;
  std::size_t directions_;
  std::size_t layers_;
  std::int64_t hidden_;
  std::vector<std::string> last_hidden_;
  std::vector<std::string> last_cell_;
};

void lstm(const Call& call) {
  Recurrent(call, {"LSTM", {0, 3, 1, 2}, {}}).run();
}

void gru(const Call& call) {
  Recurrent(call, {"GRU", {1, 0, 2}, {{"linear_before_reset", std::int64_t{1}}}}).run();
}

void rnn(const Call& call) {
  Recurrent(call, {"RNN", {0}, {}}).run();
}

}  // namespace

void add_recurrent(TranslateTable& table) {
  table.insert({{&operations::lstm, lstm}, {&operations::gru, gru}, {&operations::rnn, rnn}});
}

}  // namespace ballast::onnx
