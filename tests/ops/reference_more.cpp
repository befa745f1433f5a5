// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

double real(const Json& a, const char* name) {
  return number_of(a[name]);
}

template <class F>
Reference each(F function) {
  return [function](const Arrays& in, const Json& a) -> Arrays {
    return {filled(in[0].shape, [&](const Place& at) { return function(in[0](at), a); })};
  };
}

template <class F>
Reference zipped(F function) {
  return [function](const Arrays& in, const Json&) -> Arrays {
    return {filled(broadcast_shape(in[0].shape, in[1].shape),
                   [&](const Place& at) { return function(in[0].spread(at), in[1].spread(at)); })};
  };
}

double left_over(double a, double b) {
  const double left = std::fmod(a, b);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

References of_values() {
  return {{"remainder",
           [](const Arrays& in, const Json& a) -> Arrays {
             if (!a.contains("number")) return zipped(left_over)(in, a);
             return each([](double x, const Json& args) { return left_over(x, real(args, "number")); })(in,
                                                                                                        a);
           }},
          {"atan2", zipped([](double y, double x) { return std::atan2(y, x); })},
          {"log2", each([](double x, const Json&) { return std::log2(x); })},
          {"isfinite", each([](double x, const Json&) { return std::isfinite(x) ? 1.0 : 0.0; })},
          {"tanhshrink", each([](double x, const Json&) { return x - std::tanh(x); })},
          {"celu", each([](double x, const Json& a) {
             return std::max(0.0, x) + std::min(0.0, real(a, "alpha") * std::expm1(x / real(a, "alpha")));
           })},
          {"hardshrink", each([](double x, const Json& a) { return std::abs(x) > real(a, "lam") ? x : 0; })},
          {"softshrink", each([](double x, const Json& a) {
             const double lambda = real(a, "lam");
             return x > lambda ? x - lambda : (x < -lambda ? x + lambda : 0);
           })},
          {"threshold",
           each([](double x, const Json& a) { return x > real(a, "threshold") ? x : real(a, "value"); })},
          {"full_like", each([](double, const Json& a) { return real(a, "value"); })},
          {"glu",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), in[0].rank());
             Place shape = in[0].shape;
             shape[dim] /= 2;
             return {filled(shape, [&](Place at) {
               const double x = in[0](at);
               at[dim] += shape[dim];
               return x / (1 + std::exp(-in[0](at)));
             })};
           }},
          {"softmin",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), in[0].rank());
             return {filled(in[0].shape, [&](Place at) {
               const double x = in[0](at);
               double sum = 0;
               for (at[dim] = 0; at[dim] < in[0].shape[dim]; ++at[dim]) sum += std::exp(x - in[0](at));
               return 1 / sum;
             })};
           }},
          {"lerp",
           [](const Arrays& in, const Json& a) -> Arrays {
             return {filled(in[0].shape, [&](const Place& at) {
               const double weight = a.contains("weight") ? real(a, "weight") : in[2].spread(at);
               return in[0](at) + weight * (in[1](at) - in[0](at));
             })};
           }},
          {"isclose", [](const Arrays& in, const Json& a) -> Arrays {
             return {filled(in[0].shape, [&](const Place& at) {
               const double x = in[0](at);
               const double y = in[1](at);
               if (std::isnan(x) && std::isnan(y)) return a["equal_nan"].get<bool>() ? 1.0 : 0.0;
               if (!std::isfinite(x) || !std::isfinite(y)) return x == y ? 1.0 : 0.0;
               return std::abs(x - y) <= real(a, "absolute") + real(a, "relative") * std::abs(y) ? 1.0 : 0.0;
             })};
           }}};
}

// The sum over `dim` of what `term` makes of each place.
template <class Term>
double along(const Place& shape, Place at, std::size_t dim, Term term) {
  double sum = 0;
  for (at[dim] = 0; at[dim] < shape[dim]; ++at[dim]) sum += term(const_cast<const Place&>(at));
  return sum;
}

References of_lengths() {
  return {
      {"normalize",
       [](const Arrays& in, const Json& a) -> Arrays {
         const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), in[0].rank());
         const double p = real(a, "p");
         return {filled(in[0].shape, [&](const Place& at) {
           const double sum =
               along(in[0].shape, at, dim, [&](const Place& k) { return std::pow(std::abs(in[0](k)), p); });
           return in[0](at) / std::max(std::pow(sum, 1 / p), 1e-12);
         })};
       }},
      {"cosine_similarity",
       [](const Arrays& in, const Json& a) -> Arrays {
         const Place shape = broadcast_shape(in[0].shape, in[1].shape);
         const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), shape.size());
         Place kept = shape;
         kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(dim));
         return {filled(kept, [&](Place at) {
           at.insert(at.begin() + static_cast<std::ptrdiff_t>(dim), 0);
           const auto product = [&](std::size_t p, std::size_t q) {
             return along(shape, at, dim, [&](const Place& k) { return in[p].spread(k) * in[q].spread(k); });
           };
           const double x = std::max(std::sqrt(product(0, 0)), 1e-8);
           return product(0, 1) / x / std::max(std::sqrt(product(1, 1)), 1e-8);
         })};
       }},
      {"pairwise_distance",
       [](const Arrays& in, const Json& a) -> Arrays {
         Place shape = in[0].shape;
         const std::size_t dim = shape.size() - 1;
         Array out(shape);
         out.shape[dim] = 1;
         out.values.resize(Array::count(out.shape));
         for_each_place(out.shape, [&](const Place& at) {
           out(at) = std::pow(along(shape, at, dim,
                                    [&](const Place& k) {
                                      return std::pow(std::abs(in[0](k) - in[1](k) + 1e-6), real(a, "p"));
                                    }),
                              1 / real(a, "p"));
         });
         if (!a["keepdim"].get<bool>()) out.shape.pop_back();
         return {out};
       }},
      {"local_response_norm", [](const Arrays& in, const Json& a) -> Arrays {
         const std::int64_t size = a["size"].get<std::int64_t>();
         return {filled(in[0].shape, [&](const Place& at) {
           double sum = 0;
           Place k = at;
           for (k[1] = at[1] - size / 2; k[1] <= at[1] + (size - 1) / 2; ++k[1])
             if (k[1] >= 0 && k[1] < in[0].shape[1]) sum += in[0](k) * in[0](k);
           return in[0](at) / std::pow(real(a, "k") + real(a, "alpha") * sum / static_cast<double>(size),
                                       real(a, "beta"));
         })};
       }}};
}

Reference added(bool by_element) {
  return [by_element](const Arrays& in, const Json& a) -> Arrays {
    const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), in[0].rank());
    Array out = in[0];
    for_each_place(by_element ? in[1].shape : in[2].shape, [&](const Place& at) {
      Place to = at;
      to[dim] = static_cast<std::int64_t>(by_element ? in[1](at) : in[1]({at[dim]}));
      out(to) += in[2](at);
    });
    return {out};
  };
}

References of_choices() {
  return {{"scatter_add", added(true)},
          {"index_add", added(false)},
          {"cumprod",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), in[0].rank());
             return {filled(in[0].shape, [&](Place at) {
               double product = 1;
               for (; at[dim] >= 0; --at[dim]) product *= in[0](at);
               return product;
             })};
           }},
          {"argsort",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), in[0].rank());
             const double sign = a["descending"].get<bool>() ? -1 : 1;
             Array out(in[0].shape);
             for_each_place(in[0].shape, [&](Place at) {
               const auto own = static_cast<double>(at[dim]);
               const double x = sign * in[0](at);
               std::int64_t rank = 0;  // how many stand before it
               for (at[dim] = 0; at[dim] < in[0].shape[dim]; ++at[dim]) {
                 const double y = sign * in[0](at);
                 rank += y < x || (y == x && static_cast<double>(at[dim]) < own) ? 1 : 0;
               }
               at[dim] = rank;
               out(at) = own;
             });
             return {out};
           }},
          {"nonzero",
           [](const Arrays& in, const Json&) -> Arrays {
             Array out;
             for_each_place(in[0].shape, [&](const Place& at) {
               if (in[0](at) != 0) out.values.insert(out.values.end(), at.begin(), at.end());
             });
             const auto rank = static_cast<std::int64_t>(in[0].rank());
             const auto count =
                 std::count_if(in[0].values.begin(), in[0].values.end(), [](double x) { return x != 0; });
             out.shape = {count, rank};
             return {out};
           }},
          {"masked_select",
           [](const Arrays& in, const Json&) -> Arrays {
             Array out;
             for_each_place(broadcast_shape(in[0].shape, in[1].shape), [&](const Place& at) {
               if (in[1].spread(at) != 0) out.values.push_back(in[0].spread(at));
             });
             out.shape = {static_cast<std::int64_t>(out.values.size())};
             return {out};
           }},
          {"unbind",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), in[0].rank());
             Arrays parts;
             for (std::int64_t i = 0; i < in[0].shape[dim]; ++i) {
               Place shape = in[0].shape;
               shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
               parts.push_back(filled(shape, [&](Place at) {
                 at.insert(at.begin() + static_cast<std::ptrdiff_t>(dim), i);
                 return in[0](at);
               }));
             }
             return parts;
           }},
          {"meshgrid",
           [](const Arrays& in, const Json& a) -> Arrays {
             const bool xy = a["xy"].get<bool>() && in.size() > 1;
             Place shape;
             for (const Array& one : in) shape.push_back(one.shape[0]);
             if (xy) std::swap(shape[0], shape[1]);
             Arrays grids;
             for (std::size_t i = 0; i < in.size(); ++i) {
               const std::size_t dim = xy && i < 2 ? 1 - i : i;
               grids.push_back(filled(shape, [&](const Place& at) { return in[i]({at[dim]}); }));
             }
             return grids;
           }},
          {"diag",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::int64_t k = a["diagonal"].get<std::int64_t>();
             if (in[0].rank() == 1) {
               const std::int64_t n = in[0].shape[0] + std::abs(k);
               return {filled({n, n}, [&](const Place& at) {
                 return at[1] - at[0] == k ? in[0]({std::min(at[0], at[1])}) : 0;
               })};
             }
             Array out;
             for_each_place(in[0].shape, [&](const Place& at) {
               if (at[1] - at[0] == k) out.values.push_back(in[0](at));
             });
             out.shape = {static_cast<std::int64_t>(out.values.size())};
             return {out};
           }},
          {"unflatten",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::size_t dim = place_of(a["dim"].get<std::int64_t>(), in[0].rank());
             Place sizes = numbers(a["sizes"]);
             std::int64_t known = 1;
             for (const std::int64_t size : sizes) known *= size > 0 ? size : 1;
             for (std::int64_t& size : sizes) size = size > 0 ? size : in[0].shape[dim] / known;
             Array out = in[0];
             out.shape.erase(out.shape.begin() + static_cast<std::ptrdiff_t>(dim));
             out.shape.insert(out.shape.begin() + static_cast<std::ptrdiff_t>(dim), sizes.begin(),
                              sizes.end());
             return {out};
           }},
          {"channel_shuffle", [](const Arrays& in, const Json& a) -> Arrays {
             const std::int64_t groups = a["groups"].get<std::int64_t>();
             const std::int64_t each_has = in[0].shape[1] / groups;
             return {filled(in[0].shape, [&](Place at) {
               at[1] = at[1] % groups * each_has + at[1] / groups;
               return in[0](at);
             })};
           }}};
}

// The labels of an operand or of the output, with the dimensions of "..." as capitals from the end: Z, Y.
std::string labels_of(const std::string& text, std::size_t dots) {
  const std::size_t at = text.find("...");
  if (at == std::string::npos) return text;
  return text.substr(0, at) + std::string("XYZ").substr(3 - dots) + text.substr(at + 3);
}

Arrays einsum_of(const Arrays& in, const Json& a) {
  const std::string equation = a["equation"];
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> labels(1);
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',')
      labels.emplace_back();
    else
      labels.back() += c;
  }
  std::size_t dots = 0;
  std::map<char, std::int64_t> sizes;
  std::map<char, int> times;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool has = labels[i].find("...") != std::string::npos;
    const std::size_t own = has ? in[i].rank() + 3 - labels[i].size() : 0;
    dots = std::max(dots, own);
    labels[i] = labels_of(labels[i], own);
    for (std::size_t d = 0; d < labels[i].size(); ++d) {
      ++times[labels[i][d]];
      std::int64_t& size = sizes[labels[i][d]];
      size = std::max(size, in[i].shape[d]);
    }
  }
  std::string output = arrow == std::string::npos ? "" : labels_of(equation.substr(arrow + 2), dots);
  if (arrow == std::string::npos) {
    output = std::string("XYZ").substr(3 - dots);
    for (const auto& [letter, count] : times)
      if (count == 1 && letter != 'X' && letter != 'Y' && letter != 'Z') output += letter;
  }
  std::string all = output;
  for (const auto& [letter, size] : sizes)
    if (all.find(letter) == std::string::npos) all += letter;
  Place everything;
  for (const char letter : all) everything.push_back(sizes[letter]);
  Array out(Place(everything.begin(), everything.begin() + static_cast<std::ptrdiff_t>(output.size())));
  for_each_place(everything, [&](const Place& at) {
    double product = 1;
    for (std::size_t i = 0; i < in.size(); ++i) {
      Place own;
      for (std::size_t d = 0; d < labels[i].size(); ++d)
        own.push_back(in[i].shape[d] == 1 ? 0 : at[all.find(labels[i][d])]);
      product *= in[i](own);
    }
    out(Place(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(output.size()))) += product;
  });
  return {out};
}

}  // namespace

References reference_more() {
  References all = of_values();
  for (References part : {of_lengths(), of_choices()}) all.merge(part);
  all["einsum"] = einsum_of;
  return all;
}

}  // namespace ballast::ops_tests
