// SPDX-License-Identifier: Apache-2.0
// Layers in a row. Every one owns its index, with parameters or without, as in PyTorch: Sequential<Linear,
// ReLU, Linear> has the keys 0.weight and 2.weight, and they are matched exactly. An activation is applied by
// the layer before it where that layer can.
//
// Throws: forward() what the layers throw. Elements are valid as long as the Sequential.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ballast/detail/nn/norm.h"
#include "ballast/detail/ops/activation.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

template <class... Layers>
struct Sequential {
  std::tuple<Layers...> layers;  ///< in their order

  Sequential() requires(std::is_default_constructible_v<Layers>&&...) = default;

  Sequential(Layers... each)  // Sequential<Linear, ReLU> head{{2, 3}, {}}
      requires(sizeof...(Layers) > 0)
      : layers(std::move(each)...) {}

  /// Layer I, valid as long as the Sequential.
  template <std::size_t I>
  [[nodiscard]] auto& get() {
    return std::get<I>(layers);
  }

  /// Layer I, valid as long as the Sequential.
  template <std::size_t I>
  [[nodiscard]] const auto& get() const {
    return std::get<I>(layers);
  }

  [[nodiscard]] auto forward(const auto& x) const { return forward_from<0>(x); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static void visit_fields(auto& self, auto&& visit) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit(std::to_string(I), std::get<I>(self.layers)), ...);
    }
    (std::index_sequence_for<Layers...>{});
  }

 private:
  // Layers I and on. What follows a convolution or Linear is done with it where that is possible.
  template <std::size_t I>
  [[nodiscard]] auto forward_from(const auto& x) const {
    if constexpr (I == sizeof...(Layers)) {
      return x;
    } else if constexpr (takes_norm<I>() && takes_activation<I + 1>()) {
      return forward_from<I + 3>(conv_norm(get<I>(), get<I + 1>(), x, get<I + 2>().activation()));
    } else if constexpr (takes_norm<I>()) {
      return forward_from<I + 2>(conv_norm(get<I>(), get<I + 1>(), x));
    } else if constexpr (takes_activation<I>()) {
      return forward_from<I + 2>(get<I>().forward(x, get<I + 1>().activation()));
    } else {
      return forward_from<I + 1>(get<I>().forward(x));
    }
  }

  template <std::size_t I>
  using Layer = std::tuple_element_t<I, std::tuple<Layers...>>;

  /// Layer I can apply an activation, and layer I + 1 is one.
  template <std::size_t I>
  static consteval bool takes_activation() {
    if constexpr (I + 1 < sizeof...(Layers))
      return requires(const Layer<I>& layer, const Layer<I + 1>& next, const Tensor& x) {
        layer.forward(x, next.activation());
      };
    else
      return false;
  }

  /// Layer I may have layer I + 1, a batch norm, folded into it.
  template <std::size_t I>
  static consteval bool takes_norm() {
    if constexpr (I + 1 < sizeof...(Layers))
      return std::is_base_of_v<BatchNorm, Layer<I + 1>> && !std::is_base_of_v<BatchNorm, Layer<I>> &&
             requires(const Layer<I>& layer, const Tensor& x) {
        layer.forward(x, Activation());
      };
    else
      return false;
  }
};
/// Sequential{layer, layer}: of the layers' types.
template <class... Layers>
Sequential(Layers...) -> Sequential<Layers...>;

/// `count` layers made alike: repeat<Block>(12), repeat<nn::Linear>(3, 64, 64).
template <class Layer, class... Args>
[[nodiscard]] std::vector<Layer> repeat(std::size_t count, const Args&... args) {
  std::vector<Layer> layers;
  layers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) layers.push_back(Layer{args...});
  return layers;
}

}  // namespace ballast::nn

#pragma GCC visibility pop
