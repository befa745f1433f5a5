// SPDX-License-Identifier: Apache-2.0
// Every operation once more, in the plainest way: loops over indices, in double, nothing shared with the
// library but the Tensor. A second oracle beside torch, for machines without it; slow on purpose.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/cases.h"

namespace ballast::ops_tests {

using Place = std::vector<std::int64_t>;

/// Numbers with a shape, row-major.
struct Array {
  Place shape;
  std::vector<double> values;

  Array() = default;

  explicit Array(Place dims, double value = 0) : shape(std::move(dims)), values(count(shape), value) {}

  static std::size_t count(const Place& dims) {
    std::size_t n = 1;
    for (const std::int64_t dim : dims) n *= static_cast<std::size_t>(dim);
    return n;
  }

  [[nodiscard]] std::size_t offset(const Place& at) const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < shape.size(); ++i)
      n = n * static_cast<std::size_t>(shape[i]) + static_cast<std::size_t>(at[i]);
    return n;
  }

  double& operator()(const Place& at) { return values[offset(at)]; }

  double operator()(const Place& at) const { return values[offset(at)]; }

  /// The element that stands at `at` when this is broadcast to at's rank.
  [[nodiscard]] double spread(const Place& at) const {
    Place own(at.end() - static_cast<std::ptrdiff_t>(shape.size()), at.end());
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = shape[i] == 1 ? 0 : own[i];
    return (*this)(own);
  }

  [[nodiscard]] std::size_t rank() const { return shape.size(); }
};

inline Array array_of(const Tensor& x) {
  Array array;
  if (!x.defined()) return array;
  array.shape.assign(x.shape().begin(), x.shape().end());
  const Tensor wide = x.to(DType::f64).contiguous();
  if (x.numel() > 0) array.values.assign(wide.span<double>().begin(), wide.span<double>().end());
  return array;
}

template <class Visit>
void for_each_place(const Place& shape, Visit visit) {
  Place at(shape.size(), 0);
  const std::size_t count = Array::count(shape);
  for (std::size_t n = 0; n < count; ++n) {
    visit(const_cast<const Place&>(at));
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (++at[i] < shape[i]) break;
      at[i] = 0;
    }
  }
}

/// An array filled place by place.
template <class Value>
Array filled(const Place& shape, Value value) {
  Array out(shape);
  for_each_place(shape, [&](const Place& at) { out(at) = value(at); });
  return out;
}

inline std::size_t place_of(std::int64_t dim, std::size_t rank) {
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim);
}

inline Place numbers(const Json& list) {
  return list.get<Place>();
}

inline Place broadcast_shape(const Place& a, const Place& b) {
  Place shape(std::max(a.size(), b.size()), 1);
  for (const Place* one : {&a, &b}) {
    for (std::size_t i = 0; i < one->size(); ++i) {
      std::int64_t& dim = shape[shape.size() - one->size() + i];
      if ((*one)[i] != 1) dim = (*one)[i];
    }
  }
  return shape;
}

inline double activation_value(const std::string& name, double x) {
  const double sigmoid = 1 / (1 + std::exp(-x));
  if (name == "relu") return x < 0 ? 0 : x;
  if (name == "relu6") return x < 0 ? 0 : (x > 6 ? 6 : x);
  if (name == "gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  if (name == "gelu_tanh")
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  if (name == "silu") return x * sigmoid;
  if (name == "sigmoid") return sigmoid;
  if (name == "tanh") return std::tanh(x);
  if (name == "leaky_relu") return x > 0 ? x : 0.1 * x;
  if (name == "elu") return x > 0 ? x : 0.5 * std::expm1(x);
  if (name == "hardsigmoid") return x <= -3 ? 0 : (x >= 3 ? 1 : x / 6 + 0.5);
  if (name == "hardswish") return x <= -3 ? 0 : (x >= 3 ? x : x * (x + 3) / 6);
  if (name == "mish") return x * std::tanh(std::log1p(std::exp(x)));
  return x;
}

/// Element i of an optional parameter.
inline double value_or(const Array& x, std::size_t i, double otherwise) {
  return x.values.empty() ? otherwise : x.values[i];
}

using Arrays = std::vector<Array>;
using Reference = std::function<Arrays(const Arrays& in, const Json& args)>;
using References = std::map<std::string, Reference>;

[[nodiscard]] References reference_elementwise();
[[nodiscard]] References reference_reductions();
[[nodiscard]] References reference_movement();
[[nodiscard]] References reference_layers();
[[nodiscard]] References reference_norms();
[[nodiscard]] References reference_recurrent();
[[nodiscard]] References reference_more();
[[nodiscard]] References reference_signals();
[[nodiscard]] References reference_losses();
[[nodiscard]] References reference_boxes();

}  // namespace ballast::ops_tests
