// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

using Values = std::vector<double>;

// The values that fall together when `dims` are reduced (all of them when empty), one list for each result.
struct Groups {
  Place shape;  // of the results
  std::vector<Values> lists;
};

Groups grouped(const Array& x, const Place& dims, bool keepdim) {
  std::vector<bool> reduced(x.rank(), dims.empty());
  for (const std::int64_t dim : dims) reduced[place_of(dim, x.rank())] = true;
  Place kept = x.shape;
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = reduced[i] ? 1 : kept[i];
  Array index(kept);
  Groups groups{{}, std::vector<Values>(index.values.size())};
  for_each_place(x.shape, [&](const Place& at) {
    Place own = at;
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = reduced[i] ? 0 : own[i];
    groups.lists[index.offset(own)].push_back(x(at));
  });
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (keepdim || !reduced[i]) groups.shape.push_back(kept[i]);
  }
  return groups;
}

template <class Reduce>
Reference reduction(Reduce reduce) {
  return [reduce](const Arrays& in, const Json& args) -> Arrays {
    const Groups groups = grouped(in[0], numbers(args["dims"]), args["keepdim"].get<bool>());
    Array out(groups.shape);
    for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = reduce(groups.lists[i], args);
    return {out};
  };
}

double total(const Values& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

double variance(const Values& v, const Json& args) {
  const double mean = total(v) / static_cast<double>(v.size());
  double sum = 0;
  for (const double x : v) sum += (x - mean) * (x - mean);
  return sum / std::max(0.0, static_cast<double>(v.size()) - number_of(args["correction"]));
}

double norm_value(const Values& v, double p) {
  double sum = 0;
  double top = 0;
  double low = std::numeric_limits<double>::infinity();
  for (const double x : v) {
    sum += p == 0 ? (x != 0 ? 1 : 0) : std::pow(std::abs(x), p);
    top = std::max(top, std::abs(x));
    low = std::min(low, std::abs(x));
  }
  if (p != 0 && std::any_of(v.begin(), v.end(), [](double x) { return std::isnan(x); })) return NAN;
  if (std::isinf(p)) return p > 0 ? top : low;
  return p == 0 ? sum : std::pow(sum, 1 / p);
}

double log_sum_exp(const Values& v) {
  const double top = *std::max_element(v.begin(), v.end());
  double sum = 0;
  for (const double x : v) sum += std::exp(x - top);
  return top + std::log(sum);
}

// The first NaN, else the first of the largest.
std::size_t best(const Values& v, bool largest) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (std::isnan(v[i])) return i;
    if (largest ? v[i] > v[found] : v[i] < v[found]) found = i;
  }
  return found;
}

Reference place(bool largest) {
  return [largest](const Arrays& in, const Json& args) -> Arrays {
    const Place dims = args.contains("dim") ? Place{args["dim"].get<std::int64_t>()} : Place{};
    const Groups groups = grouped(in[0], dims, args["keepdim"].get<bool>());
    Array out(groups.shape);
    for (std::size_t i = 0; i < out.values.size(); ++i)
      out.values[i] = static_cast<double>(best(groups.lists[i], largest));
    return {out};
  };
}

// Along one dimension: the values of a line, in `count` new ones and where they came from.
template <class Change>
Arrays lines(const Array& x, std::int64_t dim_number, std::int64_t count, Change change) {
  const std::size_t dim = place_of(dim_number, x.rank());
  Place shape = x.shape;
  shape[dim] = count;
  Array values(shape);
  Array indices(shape);
  Place starts = x.shape;
  starts[dim] = 1;
  for_each_place(starts, [&](const Place& start) {
    Values line;
    Place at = start;
    for (at[dim] = 0; at[dim] < x.shape[dim]; ++at[dim]) line.push_back(x(at));
    const std::pair<Values, Values> changed = change(line);
    for (at[dim] = 0; at[dim] < count; ++at[dim]) {
      values(at) = changed.first[static_cast<std::size_t>(at[dim])];
      indices(at) = changed.second[static_cast<std::size_t>(at[dim])];
    }
  });
  return {values, indices};
}

std::pair<Values, Values> sorted(const Values& line, bool descending) {
  Values order(line.size());
  std::iota(order.begin(), order.end(), 0.0);
  std::stable_sort(order.begin(), order.end(), [&](double i, double j) {
    double a = line[static_cast<std::size_t>(i)];
    double b = line[static_cast<std::size_t>(j)];
    if (descending) std::swap(a, b);
    return std::isnan(b) ? !std::isnan(a) : a < b;
  });
  Values values;
  for (const double i : order) values.push_back(line[static_cast<std::size_t>(i)]);
  return {values, order};
}

References orders() {
  return {
      {"sort",
       [](const Arrays& in, const Json& a) -> Arrays {
         const std::int64_t dim = a["dim"].get<std::int64_t>();
         return lines(in[0], dim, in[0].shape[place_of(dim, in[0].rank())],
                      [&](const Values& line) { return sorted(line, a["descending"].get<bool>()); });
       }},
      {"topk",
       [](const Arrays& in, const Json& a) -> Arrays {
         return lines(in[0], a["dim"].get<std::int64_t>(), a["k"].get<std::int64_t>(),
                      [&](const Values& line) { return sorted(line, a["largest"].get<bool>()); });
       }},
      {"cumsum",
       [](const Arrays& in, const Json& a) -> Arrays {
         const std::int64_t dim = a["dim"].get<std::int64_t>();
         Arrays both = lines(in[0], dim, in[0].shape[place_of(dim, in[0].rank())], [](const Values& line) {
           Values sums;
           for (const double x : line) sums.push_back(x + (sums.empty() ? 0 : sums.back()));
           return std::pair(sums, sums);
         });
         both.pop_back();
         return both;
       }},
      {"arange",
       [](const Arrays&, const Json& a) -> Arrays {
         Array out({0});
         for (double x = number_of(a["start"]);
              number_of(a["step"]) > 0 ? x < number_of(a["stop"]) : x > number_of(a["stop"]);
              x += number_of(a["step"]))
           out.values.push_back(x);
         out.shape[0] = static_cast<std::int64_t>(out.values.size());
         return {out};
       }},
      {"full",
       [](const Arrays&, const Json& a) -> Arrays {
         return {filled(a["shape"].get<Place>(), [&](const Place&) { return number_of(a["value"]); })};
       }},
      {"eye",
       [](const Arrays&, const Json& a) -> Arrays {
         return {filled({a["rows"].get<std::int64_t>(), a["columns"].get<std::int64_t>()},
                        [](const Place& at) { return at[0] == at[1] ? 1.0 : 0.0; })};
       }},
      {"linspace", [](const Arrays&, const Json& a) -> Arrays {
         const std::int64_t steps = a["steps"].get<std::int64_t>();
         return {filled({steps}, [&](const Place& at) {
           const double part = steps > 1 ? static_cast<double>(at[0]) / static_cast<double>(steps - 1) : 0;
           return number_of(a["start"]) * (1 - part) + number_of(a["stop"]) * part;
         })};
       }}};
}

}  // namespace

References reference_reductions() {
  References all = orders();
  all["sum"] = reduction([](const Values& v, const Json&) { return total(v); });
  all["prod"] = reduction([](const Values& v, const Json&) {
    return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
  });
  all["mean"] =
      reduction([](const Values& v, const Json&) { return total(v) / static_cast<double>(v.size()); });
  all["var"] = reduction(variance);
  all["stddev"] = reduction([](const Values& v, const Json& args) { return std::sqrt(variance(v, args)); });
  all["norm"] =
      reduction([](const Values& v, const Json& args) { return norm_value(v, number_of(args["p"])); });
  all["logsumexp"] = reduction([](const Values& v, const Json&) { return log_sum_exp(v); });
  all["max"] = reduction([](const Values& v, const Json&) { return v[best(v, true)]; });
  all["min"] = reduction([](const Values& v, const Json&) { return v[best(v, false)]; });
  all["any"] = reduction([](const Values& v, const Json&) {
    return std::count(v.begin(), v.end(), 0.0) < static_cast<std::ptrdiff_t>(v.size()) ? 1.0 : 0.0;
  });
  all["all"] = reduction(
      [](const Values& v, const Json&) { return std::count(v.begin(), v.end(), 0.0) == 0 ? 1.0 : 0.0; });
  all["argmax"] = place(true);
  all["argmin"] = place(false);
  return all;
}

}  // namespace ballast::ops_tests
