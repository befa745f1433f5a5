// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

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

}  // namespace

References reference_norms() {
  return {{"max_pool", [](const Arrays& in, const Json& a) { return pool_of(in, a, true); }},
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
          {"rms_norm", [](const Arrays& in, const Json& a) {
             return norm_of_last(in[0], a, in[1], {}, a.contains("eps") ? number_of(a["eps"]) : 0x1p-23,
                                 false);
           }}};
}

}  // namespace ballast::ops_tests
