// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// One sample, one layer, one direction; in[3 + 5 * cell …] are its weights.
struct Cell {
  const Array& wih;
  const Array& whh;
  const Array& bih;
  const Array& bhh;
  const Array& whr;

  [[nodiscard]] double input(const std::vector<double>& x, std::size_t gate) const {
    double sum = value_or(bih, gate, 0);
    for (std::size_t k = 0; k < x.size(); ++k)
      sum += x[k] * wih.values[k * static_cast<std::size_t>(wih.shape[1]) + gate];
    return sum;
  }
  [[nodiscard]] double back(const std::vector<double>& h, std::size_t gate) const {
    double sum = value_or(bhh, gate, 0);
    for (std::size_t k = 0; k < h.size(); ++k)
      sum += h[k] * whh.values[k * static_cast<std::size_t>(whh.shape[1]) + gate];
    return sum;
  }
};

void step(const std::string& kind, const std::string& nonlinearity, const Cell& cell,
          const std::vector<double>& x, std::vector<double>& h, std::vector<double>& c) {
  const std::size_t n =
      static_cast<std::size_t>(cell.wih.shape[1]) / (kind == "lstm" ? 4 : (kind == "gru" ? 3 : 1));
  std::vector<double> next(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto gate = [&](std::size_t k) { return cell.input(x, k * n + i) + cell.back(h, k * n + i); };
    if (kind == "lstm") {
      c[i] = sigmoid(gate(1)) * c[i] + sigmoid(gate(0)) * std::tanh(gate(2));
      next[i] = sigmoid(gate(3)) * std::tanh(c[i]);
    } else if (kind == "gru") {
      const double r = sigmoid(gate(0));
      const double z = sigmoid(gate(1));
      next[i] = (1 - z) * std::tanh(cell.input(x, 2 * n + i) + r * cell.back(h, 2 * n + i)) + z * h[i];
    } else {
      next[i] = nonlinearity == "relu" ? std::max(gate(0), 0.0) : std::tanh(gate(0));
    }
  }
  if (cell.whr.values.empty()) {
    h = next;
    return;
  }
  for (std::size_t j = 0; j < h.size(); ++j) {
    h[j] = 0;
    for (std::size_t i = 0; i < n; ++i) h[j] += next[i] * cell.whr.values[i * h.size() + j];
  }
}

Reference recurrent(const std::string& kind) {
  return [kind](const Arrays& in, const Json& a) -> Arrays {
    const bool single = in[0].rank() == 2;
    const bool batch_first = !single && a["batch_first"].get<bool>();
    const std::int64_t steps = in[0].shape[batch_first ? 1 : 0];
    const std::int64_t batch = single ? 1 : in[0].shape[batch_first ? 0 : 1];
    const std::size_t directions = a["bidirectional"].get<bool>() ? 2 : 1;
    const std::size_t cells = (in.size() - 3) / 5;
    const std::int64_t out_size = in[4].shape[0];
    const std::int64_t cell_size = in[3].shape[1] / (kind == "lstm" ? 4 : (kind == "gru" ? 3 : 1));
    const auto count = static_cast<std::int64_t>(cells);
    const auto width = out_size * static_cast<std::int64_t>(directions);
    Array output(batch_first ? Place{batch, steps, width} : Place{steps, batch, width});
    Array hidden({count, batch, out_size});
    Array state({count, batch, cell_size});
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<std::vector<double>> layer;
      for (std::int64_t t = 0; t < steps; ++t) {
        layer.emplace_back();
        for (std::int64_t k = 0; k < in[0].shape.back(); ++k)
          layer.back().push_back(
              in[0](single ? Place{t, k} : (batch_first ? Place{b, t, k} : Place{t, b, k})));
      }
      for (std::size_t first = 0; first < cells; first += directions) {
        std::vector<std::vector<double>> next(static_cast<std::size_t>(steps));
        for (std::size_t d = 0; d < directions; ++d) {
          const std::size_t w = 3 + 5 * (first + d);
          const Cell cell{in[w], in[w + 1], in[w + 2], in[w + 3], in[w + 4]};
          const auto index = static_cast<std::int64_t>(first + d);
          std::vector<double> h;
          std::vector<double> c;
          for (std::int64_t k = 0; k < out_size; ++k)
            h.push_back(in[1].values.empty()
                            ? 0
                            : in[1].values[static_cast<std::size_t>((index * batch + b) * out_size + k)]);
          for (std::int64_t k = 0; k < cell_size; ++k)
            c.push_back(in[2].values.empty()
                            ? 0
                            : in[2].values[static_cast<std::size_t>((index * batch + b) * cell_size + k)]);
          for (std::size_t i = 0; i < layer.size(); ++i) {
            const std::size_t t = d == 1 ? layer.size() - 1 - i : i;
            step(kind, kind == "rnn" ? a["nonlinearity"].get<std::string>() : "", cell, layer[t], h, c);
            next[t].insert(d == 1 ? next[t].end() : next[t].begin(), h.begin(), h.end());
          }
          for (std::int64_t k = 0; k < out_size; ++k) hidden({index, b, k}) = h[static_cast<std::size_t>(k)];
          for (std::int64_t k = 0; k < cell_size; ++k) state({index, b, k}) = c[static_cast<std::size_t>(k)];
        }
        layer = next;
      }
      for (std::int64_t t = 0; t < steps; ++t) {
        for (std::int64_t k = 0; k < width; ++k)
          output(batch_first ? Place{b, t, k} : Place{t, b, k}) =
              layer[static_cast<std::size_t>(t)][static_cast<std::size_t>(k)];
      }
    }
    if (single) {
      for (Array* one : {&output, &hidden, &state}) one->shape.erase(one->shape.begin() + 1);
    }
    return kind == "lstm" ? Arrays{output, hidden, state} : Arrays{output, hidden};
  };
}

}  // namespace

References reference_recurrent() {
  return {{"lstm", recurrent("lstm")}, {"gru", recurrent("gru")}, {"rnn", recurrent("rnn")}};
}

}  // namespace ballast::ops_tests
