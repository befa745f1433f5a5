// SPDX-License-Identifier: Apache-2.0
// Layers in a row. Every one owns its index, with parameters or without, as in PyTorch: Sequential<Linear,
// ReLU, Linear> has the keys 0.weight and 2.weight, and they are matched exactly.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ballast/module.h"

namespace ballast::nn {

template <class... Layers>
struct Sequential {
  std::tuple<Layers...> layers;

  Sequential() requires(std::is_default_constructible_v<Layers>&&...) = default;

  Sequential(
      Layers... each)  // NOLINT(google-explicit-constructor): Sequential<Linear, ReLU> head{{2, 3}, {}}
      requires(sizeof...(Layers) > 0)
      : layers(std::move(each)...) {}

  template <std::size_t I>
  [[nodiscard]] auto& get() {
    return std::get<I>(layers);
  }

  template <std::size_t I>
  [[nodiscard]] const auto& get() const {
    return std::get<I>(layers);
  }

  static void visit_fields(auto& self, auto&& visit) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit(std::to_string(I), std::get<I>(self.layers)), ...);
    }
    (std::index_sequence_for<Layers...>{});
  }
};
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
