// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

std::int64_t integer(const Json& args, const char* name) {
  return args[name].get<std::int64_t>();
}

// `size` slices of `dim` from `first`.
Array part(const Array& x, std::size_t dim, std::int64_t first, std::int64_t size) {
  Place shape = x.shape;
  shape[dim] = size;
  return filled(shape, [&](Place at) {
    at[dim] += first;
    return x(at);
  });
}

Arrays cut(const Array& x, std::size_t dim, const Place& sizes) {
  Arrays parts;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(part(x, dim, first, size));
    first += size;
  }
  return parts;
}

Place equal_sizes(std::int64_t whole, std::int64_t size) {
  Place sizes;
  for (std::int64_t begin = 0; begin < whole; begin += size) sizes.push_back(std::min(size, whole - begin));
  return sizes;
}

Array joined(const Arrays& parts, std::size_t dim) {
  Place shape = parts[0].shape;
  shape[dim] = 0;
  for (const Array& one : parts) shape[dim] += one.shape[dim];
  return filled(shape, [&](Place at) {
    std::size_t i = 0;
    while (at[dim] >= parts[i].shape[dim]) at[dim] -= parts[i++].shape[dim];
    return parts[i](at);
  });
}

Array reshaped(Array x, Place shape) {
  x.shape = std::move(shape);
  return x;
}

References joining() {
  return {{"concat",
           [](const Arrays& in, const Json& a) -> Arrays {
             return {joined(in, place_of(integer(a, "dim"), in[0].rank()))};
           }},
          {"stack",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(integer(a, "dim"), in[0].rank() + 1);
             Arrays raised = in;
             for (Array& one : raised)
               one.shape.insert(one.shape.begin() + static_cast<std::ptrdiff_t>(dim), 1);
             return {joined(raised, dim)};
           }},
          {"split",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(integer(a, "dim"), in[0].rank());
             return cut(in[0], dim,
                        a.contains("size") ? equal_sizes(in[0].shape[dim], integer(a, "size"))
                                           : numbers(a["sizes"]));
           }},
          {"chunk",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(integer(a, "dim"), in[0].rank());
             const std::int64_t count = integer(a, "count");
             return cut(in[0], dim, equal_sizes(in[0].shape[dim], (in[0].shape[dim] + count - 1) / count));
           }},
          {"flatten",
           [](const Arrays& in, const Json& a) -> Arrays {
             Place shape;
             for (std::size_t i = 0; i < in[0].rank(); ++i) {
               const auto dim = static_cast<std::int64_t>(i);
               if (dim > integer(a, "start") && dim <= integer(a, "end"))
                 shape.back() *= in[0].shape[i];
               else
                 shape.push_back(in[0].shape[i]);
             }
             return {reshaped(in[0], shape)};
           }},
          {"repeat",
           [](const Arrays& in, const Json& a) -> Arrays {
             const Place times = numbers(a["repeats"]);
             Place own(times.size() - in[0].rank(), 1);
             own.insert(own.end(), in[0].shape.begin(), in[0].shape.end());
             Place shape = own;
             for (std::size_t i = 0; i < shape.size(); ++i) shape[i] *= times[i];
             const Array x = reshaped(in[0], own);
             return {filled(shape, [&](Place at) {
               for (std::size_t i = 0; i < at.size(); ++i) at[i] %= own[i];
               return x(at);
             })};
           }},
          {"repeat_interleave", [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(integer(a, "dim"), in[0].rank());
             Place shape = in[0].shape;
             shape[dim] *= integer(a, "repeats");
             return {filled(shape, [&](Place at) {
               at[dim] /= integer(a, "repeats");
               return in[0](at);
             })};
           }}};
}

std::int64_t pad_source(const std::string& mode, std::int64_t i, std::int64_t size) {
  if (mode == "circular") return (i + size) % size;
  if (mode == "replicate") return std::clamp<std::int64_t>(i, 0, size - 1);
  return i < 0 ? -i : (i >= size ? 2 * size - 2 - i : i);
}

Array padded(const Array& x, const Place& pads, const std::string& mode, double value) {
  Place shape = x.shape;
  Place before(x.rank(), 0);
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    shape[x.rank() - 1 - i] += pads[2 * i] + pads[2 * i + 1];
    before[x.rank() - 1 - i] = pads[2 * i];
  }
  return filled(shape, [&](Place at) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i] -= before[i];
      if (mode != "constant")
        at[i] = pad_source(mode, at[i], x.shape[i]);
      else if (at[i] < 0 || at[i] >= x.shape[i])
        return value;
    }
    return x(at);
  });
}

References choosing() {
  return {{"pad",
           [](const Arrays& in, const Json& a) -> Arrays {
             return {padded(in[0], numbers(a["pads"]), a["mode"], number_of(a["value"]))};
           }},
          {"gather",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(integer(a, "dim"), in[0].rank());
             return {filled(in[1].shape, [&](Place at) {
               at[dim] = static_cast<std::int64_t>(in[1](at));
               return in[0](at);
             })};
           }},
          {"scatter",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(integer(a, "dim"), in[0].rank());
             Array out = in[0];
             for_each_place(in[1].shape, [&](const Place& at) {
               Place to = at;
               to[dim] = static_cast<std::int64_t>(in[1](at));
               out(to) = a.contains("number") ? number_of(a["number"]) : in[2](at);
             });
             return {out};
           }},
          {"index_select",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(integer(a, "dim"), in[0].rank());
             Place shape = in[0].shape;
             shape[dim] = static_cast<std::int64_t>(in[1].values.size());
             return {filled(shape, [&](Place at) {
               at[dim] = static_cast<std::int64_t>(in[1].values[static_cast<std::size_t>(at[dim])]);
               return in[0](at);
             })};
           }},
          {"embedding",
           [](const Arrays& in, const Json&) -> Arrays {
             Place shape = in[0].shape;
             shape.push_back(in[1].shape[1]);
             return {filled(shape, [&](const Place& at) {
               const Place row(at.begin(), at.end() - 1);
               return in[1]({static_cast<std::int64_t>(in[0](row)), at.back()});
             })};
           }},
          {"one_hot",
           [](const Arrays& in, const Json& a) -> Arrays {
             Place shape = in[0].shape;
             shape.push_back(integer(a, "classes") == -1 ? static_cast<std::int64_t>(*std::max_element(
                                                               in[0].values.begin(), in[0].values.end())) +
                                                               1
                                                         : integer(a, "classes"));
             return {filled(shape, [&](const Place& at) {
               return in[0](Place(at.begin(), at.end() - 1)) == static_cast<double>(at.back()) ? 1.0 : 0.0;
             })};
           }},
          {"flip",
           [](const Arrays& in, const Json& a) -> Arrays {
             return {filled(in[0].shape, [&](Place at) {
               for (const std::int64_t dim : numbers(a["dims"]))
                 at[place_of(dim, at.size())] =
                     in[0].shape[place_of(dim, at.size())] - 1 - at[place_of(dim, at.size())];
               return in[0](at);
             })};
           }},
          {"roll", [](const Arrays& in, const Json& a) -> Arrays {
             const Place dims = numbers(a["dims"]);
             const Place shifts = numbers(a["shifts"]);
             const Array x =
                 dims.empty() ? reshaped(in[0], {static_cast<std::int64_t>(in[0].values.size())}) : in[0];
             const Array rolled = filled(x.shape, [&](Place at) {
               for (std::size_t i = 0; i < shifts.size(); ++i) {
                 const std::size_t dim = dims.empty() ? 0 : place_of(dims[i], x.rank());
                 const std::int64_t size = x.shape[dim];
                 at[dim] = ((at[dim] - shifts[i]) % size + size) % size;
               }
               return x(at);
             });
             return {reshaped(rolled, in[0].shape)};
           }}};
}

Reference triangle(bool lower) {
  return [lower](const Arrays& in, const Json& a) -> Arrays {
    return {filled(in[0].shape, [&](const Place& at) {
      const std::int64_t above = at[at.size() - 1] - at[at.size() - 2] - integer(a, "diagonal");
      return (lower ? above <= 0 : above >= 0) ? in[0](at) : 0;
    })};
  };
}

// [..., c * r * r, h, w] and [..., c, h * r, w * r] hold the same elements: the place in the first of a place
// in the second.
Place unshuffled(Place at, std::int64_t r) {
  const std::size_t n = at.size();
  at[n - 3] = at[n - 3] * r * r + at[n - 2] % r * r + at[n - 1] % r;
  at[n - 2] /= r;
  at[n - 1] /= r;
  return at;
}

References pictures() {
  return {{"tril", triangle(true)},
          {"triu", triangle(false)},
          {"pixel_shuffle",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::int64_t r = integer(a, "factor");
             Place shape = in[0].shape;
             const std::size_t n = shape.size();
             shape[n - 3] /= r * r;
             shape[n - 2] *= r;
             shape[n - 1] *= r;
             return {filled(shape, [&](const Place& at) { return in[0](unshuffled(at, r)); })};
           }},
          {"pixel_unshuffle", [](const Arrays& in, const Json& a) -> Arrays {
             const std::int64_t r = integer(a, "factor");
             Place shape = in[0].shape;
             const std::size_t n = shape.size();
             shape[n - 3] *= r * r;
             shape[n - 2] /= r;
             shape[n - 1] /= r;
             Array out(shape);
             for_each_place(in[0].shape, [&](const Place& at) { out(unshuffled(at, r)) = in[0](at); });
             return {out};
           }}};
}

double cubic(double d) {
  d = std::abs(d);
  const double a = -0.75;
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

// How much input i contributes to output o in one dimension.
double resize_weight(const Json& a, std::size_t dim, std::int64_t in, std::int64_t out, std::int64_t o,
                     std::int64_t i) {
  const bool flat_nearest = a["mode"] == "nearest" && a.contains("scale") && a["scale"].size() == 2;
  const bool by_size = !a.contains("scale") || (in == out && (a["mode"] == "linear" || flat_nearest)) ||
                       (out == 2 * in && flat_nearest);
  const double scale =
      by_size ? static_cast<double>(in) / static_cast<double>(out) : 1 / a["scale"][dim].get<double>();
  const bool align = a["align"].get<bool>();
  // In float, as torch computes positions: the nearest one jumps.
  if (a["mode"] == "nearest")
    return std::min(static_cast<std::int64_t>(static_cast<float>(o) * static_cast<float>(scale)), in - 1) == i
               ? 1
               : 0;
  const double aligned = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  double source = align ? aligned * static_cast<double>(o) : scale * (static_cast<double>(o) + 0.5) - 0.5;
  if (a["mode"] == "linear") source = std::max(source, 0.0);
  double weight = 0;
  for (std::int64_t k = static_cast<std::int64_t>(std::floor(source)) - 1;
       k <= static_cast<std::int64_t>(std::floor(source)) + 2; ++k) {
    const double distance = std::abs(source - static_cast<double>(k));
    if (std::clamp<std::int64_t>(k, 0, in - 1) == i)
      weight += a["mode"] == "linear" ? std::max(0.0, 1 - distance) : cubic(distance);
  }
  return weight;
}

Arrays resized(const Arrays& in, const Json& a) {
  Array x = in[0];
  for (std::size_t dim = 2; dim < x.rank(); ++dim) {
    Place shape = x.shape;
    shape[dim] = a.contains("size")
                     ? a["size"][dim - 2].get<std::int64_t>()
                     : static_cast<std::int64_t>(
                           std::floor(static_cast<double>(shape[dim]) * a["scale"][dim - 2].get<double>()));
    x = filled(shape, [&](Place at) {
      const std::int64_t o = at[dim];
      double sum = 0;
      for (at[dim] = 0; at[dim] < x.shape[dim]; ++at[dim])
        sum += resize_weight(a, dim - 2, x.shape[dim], shape[dim], o, at[dim]) * x(at);
      return sum;
    });
  }
  return {x};
}

}  // namespace

References reference_movement() {
  References all = joining();
  all.merge(choosing());
  all.merge(pictures());
  all["resize"] = resized;
  return all;
}

}  // namespace ballast::ops_tests
