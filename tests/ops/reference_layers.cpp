// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
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
          {"scaled_dot_product_attention", attention_of}};
}

}  // namespace ballast::ops_tests
