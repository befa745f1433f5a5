// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

using One = double (*)(double);
using Two = double (*)(double, double);

Reference map_of(std::function<double(double)> f) {
  return [f](const Arrays& in, const Json&) -> Arrays {
    return {filled(in[0].shape, [&](const Place& at) { return f(in[0](at)); })};
  };
}

Reference zip_of(Two f) {
  return [f](const Arrays& in, const Json& args) -> Arrays {
    if (args.contains("number")) {
      const double number = args["number"].get<double>();
      const bool first = args["first"].get<bool>();
      return {filled(in[0].shape,
                     [&](const Place& at) { return first ? f(number, in[0](at)) : f(in[0](at), number); })};
    }
    return {filled(broadcast_shape(in[0].shape, in[1].shape),
                   [&](const Place& at) { return f(in[0].spread(at), in[1].spread(at)); })};
  };
}

Reference activation(const std::string& name) {
  return map_of([name](double x) { return activation_value(name, x); });
}

// As PyTorch: the square root, which treats -0 and minus infinity otherwise than the power does.
double power(double a, double b) {
  if (b == 0.5) return std::sqrt(a);
  return b == -0.5 ? 1 / std::sqrt(a) : std::pow(a, b);
}

double sign_of(double x) {
  return x > 0 ? 1 : (x < 0 ? -1 : 0);
}

// e^x / sum of e^x along one dimension, or its logarithm.
Reference soft(bool logarithm) {
  return [logarithm](const Arrays& in, const Json& args) -> Arrays {
    const Array& x = in[0];
    const std::size_t dim = place_of(args["dim"].get<std::int64_t>(), x.rank());
    return {filled(x.shape, [&](const Place& at) {
      double top = -std::numeric_limits<double>::infinity();
      double total = 0;
      Place other = at;
      for (other[dim] = 0; other[dim] < x.shape[dim]; ++other[dim]) top = std::max(top, x(other));
      for (other[dim] = 0; other[dim] < x.shape[dim]; ++other[dim]) total += std::exp(x(other) - top);
      return logarithm ? x(at) - top - std::log(total) : std::exp(x(at) - top) / total;
    })};
  };
}

References maps() {
  References all;
  const std::map<std::string, One> ones = {
      {"exp", std::exp},
      {"expm1", std::expm1},
      {"log", std::log},
      {"log1p", std::log1p},
      {"sqrt", std::sqrt},
      {"sin", std::sin},
      {"cos", std::cos},
      {"tan", std::tan},
      {"erf", std::erf},
      {"floor", std::floor},
      {"ceil", std::ceil},
      {"round", std::nearbyint},
      {"trunc", std::trunc},
      {"sign", sign_of},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"reciprocal", [](double x) { return 1 / x; }},
      {"square", [](double x) { return x * x; }},
      {"neg", [](double x) { return -x; }},
      {"abs", [](double x) { return std::abs(x); }},
      {"softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"log_sigmoid", [](double x) { return x < -700 ? x : -std::log1p(std::exp(-x)); }},
      {"selu",
       [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }},
      {"logical_not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
      {"isnan", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
      {"isinf", [](double x) { return std::isinf(x) ? 1.0 : 0.0; }}};
  for (const auto& [name, f] : ones) all[name] = map_of(f);
  for (const char* name :
       {"relu", "relu6", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "hardswish", "hardsigmoid", "mish"})
    all[name] = activation(name);
  return all;
}

References zips() {
  References all;
  const std::map<std::string, Two> twos = {
      {"add", [](double a, double b) { return a + b; }},
      {"sub", [](double a, double b) { return a - b; }},
      {"mul", [](double a, double b) { return a * b; }},
      {"div", [](double a, double b) { return a / b; }},
      {"pow", power},
      {"minimum", [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }},
      {"maximum", [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }},
      {"eq", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"ne", [](double a, double b) { return a != b ? 1.0 : 0.0; }},
      {"lt", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"le", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"gt", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"ge", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"logical_and", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
      {"logical_or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
      {"logical_xor", [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }}};
  for (const auto& [name, f] : twos) all[name] = zip_of(f);
  return all;
}

References with_arguments() {
  return {
      {"add_activated",
       [](const Arrays& in, const Json& a) -> Arrays {
         return {filled(broadcast_shape(in[0].shape, in[1].shape), [&](const Place& at) {
           return activation_value(a["activation"], in[0].spread(at) + in[1].spread(at));
         })};
       }},
      {"where",
       [](const Arrays& in, const Json&) -> Arrays {
         const Place shape = broadcast_shape(in[0].shape, broadcast_shape(in[1].shape, in[2].shape));
         return {filled(shape, [&](const Place& at) {
           return in[0].spread(at) != 0 ? in[1].spread(at) : in[2].spread(at);
         })};
       }},
      {"masked_fill",
       [](const Arrays& in, const Json& a) -> Arrays {
         return {filled(in[0].shape, [&](const Place& at) {
           return in[1].spread(at) != 0 ? number_of(a["value"]) : in[0](at);
         })};
       }},
      {"clamp",
       [](const Arrays& in, const Json& a) -> Arrays {
         return {filled(in[0].shape, [&](const Place& at) {
           double x = in[0](at);
           if (a.contains("low") && x < number_of(a["low"])) x = number_of(a["low"]);
           if (a.contains("high") && x > number_of(a["high"])) x = number_of(a["high"]);
           return x;
         })};
       }},
      {"softplus",
       [](const Arrays& in, const Json& a) -> Arrays {
         const double beta = number_of(a["beta"]);
         return {filled(in[0].shape, [&](const Place& at) {
           const double x = in[0](at);
           return x * beta > number_of(a["threshold"]) ? x : std::log1p(std::exp(x * beta)) / beta;
         })};
       }},
      {"elu",
       [](const Arrays& in, const Json& a) -> Arrays {
         return {filled(in[0].shape, [&](const Place& at) {
           return in[0](at) > 0 ? in[0](at) : number_of(a["alpha"]) * std::expm1(in[0](at));
         })};
       }},
      {"leaky_relu",
       [](const Arrays& in, const Json& a) -> Arrays {
         return {filled(in[0].shape, [&](const Place& at) {
           return in[0](at) > 0 ? in[0](at) : number_of(a["slope"]) * in[0](at);
         })};
       }},
      {"hardtanh",
       [](const Arrays& in, const Json& a) -> Arrays {
         return {filled(in[0].shape, [&](const Place& at) {
           const double x = in[0](at);
           return std::isnan(x) ? x : std::min(std::max(x, number_of(a["low"])), number_of(a["high"]));
         })};
       }},
      {"prelu",
       [](const Arrays& in, const Json&) -> Arrays {
         return {filled(in[0].shape, [&](const Place& at) {
           const double alpha = in[1].values[in[1].values.size() > 1 ? static_cast<std::size_t>(at[1]) : 0];
           return in[0](at) > 0 ? in[0](at) : alpha * in[0](at);
         })};
       }},
      {"softmax", soft(false)},
      {"log_softmax", soft(true)},
  };
}

}  // namespace

References reference_elementwise() {
  References all = with_arguments();
  all.merge(maps());
  all.merge(zips());
  return all;
}

}  // namespace ballast::ops_tests
