// SPDX-License-Identifier: Apache-2.0
// Layers made from the options of a case (layer_cases.py), loaded with its parameters and run on its inputs.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ballast/load.h"
#include "ballast/nn.h"
#include "ops/cases.h"

namespace ballast::nn_tests {

using ops_tests::Case;
using ops_tests::Json;
using ops_tests::Tensors;

/// The results of the layer on the case's inputs.
using RunLayer = std::function<Tensors(const Case& one)>;
using Layers = std::map<std::string, RunLayer>;

/// Every kind of layer.
[[nodiscard]] const Layers& layers();
[[nodiscard]] Layers spatial_layers();
[[nodiscard]] Layers sequence_layers();
[[nodiscard]] Layers more_layers();
[[nodiscard]] Layers loss_layers();

inline std::size_t state_size(const Case& one) {
  return one.args["state"].size();
}

/// The i-th of what forward gets.
inline Tensor input(const Case& one, std::size_t i) {
  return one.inputs.at(state_size(one) + i);
}

/// A layer inside a model, so that it has a path.
template <class Layer>
struct Model {
  Layer layer;
};

/// With the case's parameters; nothing may be missing or left over.
template <class Layer>
Model<Layer> loaded(const Case& one, Layer layer) {
  Checkpoint state;
  for (std::size_t i = 0; i < state_size(one); ++i)
    state.add("layer." + one.args["state"][i].get<std::string>(), one.inputs[i]);
  Model<Layer> model{std::move(layer)};
  load(model, state, {.unused = OnUnused::error});
  return model;
}

/// Twice: the second time with everything prepared, which must change nothing.
template <class Layer>
Tensors run_one_input(const Case& one, Layer layer) {
  const Model<Layer> model = loaded(one, std::move(layer));
  const Tensor first = model.layer.forward(input(one, 0));
  const Tensor again = model.layer.forward(input(one, 0));
  return ops_tests::error_of(again, first) == 0 ? Tensors{again} : Tensors{};
}

template <std::size_t N>
nn::Size<N> size_of(const Json& list) {
  nn::Size<N> size = 0;
  for (std::size_t i = 0; i < N; ++i) size.values[i] = list[i].get<std::int64_t>();
  return size;
}

inline std::int64_t integer(const Json& args, const char* name) {
  return args[name].get<std::int64_t>();
}

inline bool flag(const Json& args, const char* name) {
  return args[name].get<bool>();
}

}  // namespace ballast::nn_tests
