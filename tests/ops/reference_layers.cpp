// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

std::int64_t integer(const Json& args, const char* name) {
  return args[name].get<std::int64_t>();
}

Place each(const Json& list, std::size_t count) {
  const Place given = numbers(list);
  return given.size() == count ? given : Place(count, given.at(0));
}

double value_or(const Array& x, std::size_t i, double otherwise) {
  return x.values.empty() ? otherwise : x.values[i];
}

// [..., m, k] by [..., k, n].
Array product(Array a, Array b) {
  const bool row = a.rank() == 1;
  const bool column = b.rank() == 1;
  if (row) a.shape.insert(a.shape.begin(), 1);
  if (column) b.shape.push_back(1);
  Place shape =
      broadcast_shape(Place(a.shape.begin(), a.shape.end() - 2), Place(b.shape.begin(), b.shape.end() - 2));
  shape.push_back(a.shape[a.rank() - 2]);
  shape.push_back(b.shape.back());
  Array out = filled(shape, [&](const Place& at) {
    double sum = 0;
    Place left = at;
    Place right = at;
    for (std::int64_t k = 0; k < a.shape.back(); ++k) {
      left.back() = k;
      right[right.size() - 2] = k;
      sum += a.spread(left) * b.spread(right);
    }
    return sum;
  });
  if (column) out.shape.pop_back();
  if (row) out.shape.erase(out.shape.end() - (column ? 1 : 2));
  return out;
}

Array linear_of(const Array& x, const Array& weight, const Array& bias) {
  Array out = product(x, weight);
  const std::size_t outs = static_cast<std::size_t>(weight.shape[1]);
  for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] += value_or(bias, i % outs, 0);
  return out;
}

Arrays bilinear_of(const Arrays& in, const Json&) {
  Place shape = in[0].shape;
  shape.back() = in[2].shape[0];
  return {filled(shape, [&](const Place& at) {
    double sum = value_or(in[3], static_cast<std::size_t>(at.back()), 0);
    Place a = at;
    Place b = at;
    for (a.back() = 0; a.back() < in[2].shape[1]; ++a.back()) {
      for (b.back() = 0; b.back() < in[2].shape[2]; ++b.back())
        sum += in[0](a) * in[2]({at.back(), a.back(), b.back()}) * in[1](b);
    }
    return sum;
  })};
}

// Where a position lands when padding of this mode surrounds it; -1: on a zero.
std::int64_t inside(const std::string& mode, std::int64_t i, std::int64_t size) {
  if (i >= 0 && i < size) return i;
  if (mode == "circular") return (i + size) % size;
  if (mode == "replicate") return std::clamp<std::int64_t>(i, 0, size - 1);
  if (mode == "reflect") return i < 0 ? -i : 2 * size - 2 - i;
  return -1;
}

Arrays conv_of(const Arrays& in, const Json& a) {
  Array x = in[0];
  const Array& w = in[1];
  const std::size_t n = w.rank() - 2;
  const bool single = x.rank() == n + 1;
  if (single) x.shape.insert(x.shape.begin(), 1);
  const Place stride = each(a["stride"], n);
  const Place dilation = each(a["dilation"], n);
  Place before = each(a["padding"], n);
  Place after = before;
  Place shape = {x.shape[0], w.shape[0]};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t reach = dilation[i] * (w.shape[i + 2] - 1);
    if (a["same"].get<bool>()) {
      before[i] = reach / 2;
      after[i] = reach - reach / 2;
    }
    shape.push_back((x.shape[i + 2] + before[i] + after[i] - reach - 1) / stride[i] + 1);
  }
  const std::int64_t out_group = w.shape[0] / integer(a, "groups");
  Array out = filled(shape, [&](const Place& at) {
    double sum = value_or(in[2], static_cast<std::size_t>(at[1]), 0);
    const Place taps(w.shape.begin() + 1, w.shape.end());  // channel and kernel
    for_each_place(taps, [&](const Place& tap) {
      Place from = at;
      Place weight = {at[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      from[1] = at[1] / out_group * w.shape[1] + tap[0];
      for (std::size_t i = 0; i < n; ++i) {
        from[i + 2] =
            inside(a["mode"], at[i + 2] * stride[i] - before[i] + tap[i + 1] * dilation[i], x.shape[i + 2]);
        if (from[i + 2] < 0) return;
      }
      sum += x(from) * w(weight);
    });
    return activation_value(a["activation"], sum);
  });
  if (single) out.shape.erase(out.shape.begin());
  return {out};
}

Arrays conv_transpose_of(const Arrays& in, const Json& a) {
  Array x = in[0];
  const Array& w = in[1];
  const std::size_t n = w.rank() - 2;
  const bool single = x.rank() == n + 1;
  if (single) x.shape.insert(x.shape.begin(), 1);
  const Place stride = each(a["stride"], n);
  const Place dilation = each(a["dilation"], n);
  const Place padding = each(a["padding"], n);
  const Place extra = each(a["output_padding"], n);
  const std::int64_t groups = integer(a, "groups");
  Place shape = {x.shape[0], w.shape[1] * groups};
  for (std::size_t i = 0; i < n; ++i)
    shape.push_back((x.shape[i + 2] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (w.shape[i + 2] - 1) +
                    extra[i] + 1);
  Array out =
      filled(shape, [&](const Place& at) { return value_or(in[2], static_cast<std::size_t>(at[1]), 0); });
  const std::int64_t in_group = x.shape[1] / groups;
  for_each_place(x.shape, [&](const Place& from) {
    for_each_place(Place(w.shape.begin() + 1, w.shape.end()), [&](const Place& tap) {
      Place to = from;
      Place weight = {from[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      to[1] = from[1] / in_group * w.shape[1] + tap[0];
      for (std::size_t i = 0; i < n; ++i) {
        to[i + 2] = from[i + 2] * stride[i] - padding[i] + tap[i + 1] * dilation[i];
        if (to[i + 2] < 0 || to[i + 2] >= shape[i + 2]) return;
      }
      out(to) += x(from) * w(weight);
    });
  });
  if (single) out.shape.erase(out.shape.begin());
  return {out};
}

// Calls visit(place in x) for the window that starts at `begin`, where it lies inside; the spatial dimensions
// are the last ones.
template <class Visit>
void for_each_in_window(const Array& x, const Place& at, const Place& begin, const Place& size,
                        const Place& step, Visit visit) {
  for_each_place(size, [&](const Place& offset) {
    Place from = at;
    for (std::size_t i = 0; i < size.size(); ++i) {
      const std::size_t dim = x.rank() - size.size() + i;
      from[dim] = begin[i] + offset[i] * step[i];
      if (from[dim] < 0 || from[dim] >= x.shape[dim]) return;
    }
    visit(from);
  });
}

std::int64_t pooled_size(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                         std::int64_t dilation, bool ceil) {
  const double exact =
      static_cast<double>(in + 2 * padding - dilation * (kernel - 1) - 1) / static_cast<double>(stride) + 1;
  auto out = static_cast<std::int64_t>(ceil ? std::ceil(exact) : std::floor(exact));
  if (ceil && (out - 1) * stride >= in + padding) --out;
  return out;
}

Arrays pool_of(const Arrays& in, const Json& a, bool max) {
  const Array& x = in[0];
  const Place kernel = numbers(a["kernel"]);
  const Place stride = a["stride"].empty() ? kernel : numbers(a["stride"]);
  const Place padding = numbers(a["padding"]);
  const Place dilation = max ? numbers(a["dilation"]) : Place(kernel.size(), 1);
  Place shape = x.shape;
  const std::size_t first = x.rank() - kernel.size();
  for (std::size_t i = 0; i < kernel.size(); ++i)
    shape[first + i] =
        pooled_size(x.shape[first + i], kernel[i], stride[i], padding[i], dilation[i], a["ceil"].get<bool>());
  return {filled(shape, [&](const Place& at) {
    Place begin;
    double padded = 1;  // elements of the window, padding included
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      begin.push_back(at[first + i] * stride[i] - padding[i]);
      padded *=
          static_cast<double>(std::min(begin[i] + kernel[i], x.shape[first + i] + padding[i]) - begin[i]);
    }
    double value = max ? -std::numeric_limits<double>::infinity() : 0;
    double count = 0;
    for_each_in_window(x, at, begin, kernel, dilation, [&](const Place& from) {
      if (!max)
        value += x(from);
      else if (x(from) > value || std::isnan(x(from)))
        value = x(from);
      ++count;
    });
    if (max) return value;
    return value /
           (a.contains("divisor") ? number_of(a["divisor"]) : (a["include"].get<bool>() ? padded : count));
  })};
}

Arrays adaptive_of(const Arrays& in, const Place& out, bool max) {
  const Array& x = in[0];
  Place shape = x.shape;
  const std::size_t first = x.rank() - out.size();
  for (std::size_t i = 0; i < out.size(); ++i) shape[first + i] = out[i] == -1 ? x.shape[first + i] : out[i];
  return {filled(shape, [&](const Place& at) {
    Place begin;
    Place size;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double ratio = static_cast<double>(x.shape[first + i]) / static_cast<double>(shape[first + i]);
      begin.push_back(
          static_cast<std::int64_t>(std::floor(static_cast<double>(at[first + i]) * ratio + 1e-9)));
      size.push_back(
          static_cast<std::int64_t>(std::ceil(static_cast<double>(at[first + i] + 1) * ratio - 1e-9)) -
          begin[i]);
    }
    double value = max ? -std::numeric_limits<double>::infinity() : 0;
    double count = 0;
    for_each_in_window(x, at, begin, size, Place(out.size(), 1), [&](const Place& from) {
      value = max ? std::max(value, x(from)) : value + x(from);
      ++count;
    });
    return max ? value : value / count;
  })};
}

// (x - mean) / sqrt(variance + eps) over groups of places, scaled and shifted.
template <class Group, class Parameter>
Arrays normalized(const Array& x, Group group, Parameter parameter, const Array& gamma, const Array& beta,
                  double eps, bool centred = true) {
  std::map<Place, std::vector<double>> groups;
  for_each_place(x.shape, [&](const Place& at) { groups[group(at)].push_back(x(at)); });
  std::map<Place, std::pair<double, double>> moments;
  for (const auto& [key, values] : groups) {
    double mean = 0;
    double square = 0;
    for (const double v : values) mean += v / static_cast<double>(values.size());
    if (!centred) mean = 0;
    for (const double v : values) square += (v - mean) * (v - mean) / static_cast<double>(values.size());
    moments[key] = {mean, square};
  }
  return {filled(x.shape, [&](const Place& at) {
    const auto& [mean, square] = moments[group(at)];
    return (x(at) - mean) / std::sqrt(square + eps) * value_or(gamma, parameter(at), 1) +
           value_or(beta, parameter(at), 0);
  })};
}

Arrays norm_of_last(const Array& x, const Json& a, const Array& gamma, const Array& beta, double eps,
                    bool centred) {
  const Array shape(numbers(a["normalized"]));
  const auto kept = static_cast<std::ptrdiff_t>(x.rank() - shape.rank());
  return normalized(
      x, [=](const Place& at) { return Place(at.begin(), at.begin() + kept); },
      [&](const Place& at) { return shape.offset(Place(at.begin() + kept, at.end())); }, gamma, beta, eps,
      centred);
}

Arrays norm_of_groups(const Array& x, std::int64_t groups, const Array& gamma, const Array& beta,
                      double eps) {
  const std::int64_t members = x.shape[1] / groups;
  return normalized(
      x,
      [=](const Place& at) {
        return Place{at[0], at[1] / members};
      },
      [](const Place& at) { return static_cast<std::size_t>(at[1]); }, gamma, beta, eps);
}

Arrays attention_of(const Arrays& in, const Json& a) {
  Array key = in[1];
  Array turned = key;
  std::swap(turned.shape[key.rank() - 1], turned.shape[key.rank() - 2]);
  turned = filled(turned.shape, [&](Place at) {
    std::swap(at[at.size() - 1], at[at.size() - 2]);
    return key(at);
  });
  Array scores = product(in[0], turned);
  const double scale =
      a.contains("scale") ? number_of(a["scale"]) : 1 / std::sqrt(static_cast<double>(in[0].shape.back()));
  const double hidden = -std::numeric_limits<double>::infinity();
  const bool numbers_mask =
      in[3].values.size() > 0 &&
      !std::all_of(in[3].values.begin(), in[3].values.end(), [](double v) { return v == 0 || v == 1; });
  for_each_place(scores.shape, [&](const Place& at) {
    double& score = scores(at);
    score *= scale;
    if (!in[3].values.empty())
      score += numbers_mask ? in[3].spread(at) : (in[3].spread(at) != 0 ? 0 : hidden);
    if (a["causal"].get<bool>() && at[at.size() - 1] > at[at.size() - 2] + integer(a, "offset"))
      score = hidden;
  });
  const Array weights = reference_elementwise().at("softmax")({scores}, Json{{"dim", -1}})[0];
  return {product(weights, in[2])};
}

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

References reference_layers() {
  return {{"matmul", [](const Arrays& in, const Json&) -> Arrays { return {product(in[0], in[1])}; }},
          {"linear",
           [](const Arrays& in, const Json& a) -> Arrays {
             Array out = linear_of(in[0], in[1], in[2]);
             for (double& v : out.values) v = activation_value(a["activation"], v);
             return {out};
           }},
          {"bilinear", bilinear_of},
          {"conv", conv_of},
          {"conv_transpose", conv_transpose_of},
          {"max_pool", [](const Arrays& in, const Json& a) { return pool_of(in, a, true); }},
          {"avg_pool", [](const Arrays& in, const Json& a) { return pool_of(in, a, false); }},
          {"adaptive_avg_pool",
           [](const Arrays& in, const Json& a) { return adaptive_of(in, numbers(a["out"]), false); }},
          {"adaptive_max_pool",
           [](const Arrays& in, const Json& a) { return adaptive_of(in, numbers(a["out"]), true); }},
          {"global_avg_pool",
           [](const Arrays& in, const Json&) { return adaptive_of(in, Place(in[0].rank() - 2, 1), false); }},
          {"global_max_pool",
           [](const Arrays& in, const Json&) { return adaptive_of(in, Place(in[0].rank() - 2, 1), true); }},
          {"batch_norm",
           [](const Arrays& in, const Json& a) -> Arrays {
             return {filled(in[0].shape, [&](const Place& at) {
               const auto c = static_cast<std::size_t>(at[1]);
               return (in[0](at) - in[1].values[c]) / std::sqrt(in[2].values[c] + number_of(a["eps"])) *
                          value_or(in[3], c, 1) +
                      value_or(in[4], c, 0);
             })};
           }},
          {"layer_norm",
           [](const Arrays& in, const Json& a) {
             return norm_of_last(in[0], a, in[1], in[2], number_of(a["eps"]), true);
           }},
          {"group_norm",
           [](const Arrays& in, const Json& a) {
             return norm_of_groups(in[0], integer(a, "groups"), in[1], in[2], number_of(a["eps"]));
           }},
          {"instance_norm",
           [](const Arrays& in, const Json& a) {
             return norm_of_groups(in[0], in[0].shape[1], in[1], in[2], number_of(a["eps"]));
           }},
          {"rms_norm",
           [](const Arrays& in, const Json& a) {
             return norm_of_last(in[0], a, in[1], {}, a.contains("eps") ? number_of(a["eps"]) : 0x1p-23,
                                 false);
           }},
          {"scaled_dot_product_attention", attention_of},
          {"lstm", recurrent("lstm")},
          {"gru", recurrent("gru")},
          {"rnn", recurrent("rnn")}};
}

}  // namespace ballast::ops_tests
