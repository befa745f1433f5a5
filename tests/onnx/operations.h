// SPDX-License-Identifier: Apache-2.0
// Cases of single operations: a function of tensors, without weights.
#pragma once

#include <functional>

#include "onnx/case.h"

namespace onnx_cases {

using Function = std::function<Tensors(std::span<const Tensor>)>;

inline void add_case(std::vector<Case>& cases, std::string name, std::vector<CaseInput> inputs,
                     Function forward, std::vector<Sizes> sizes) {
  Case one;
  one.name = std::move(name);
  one.inputs = std::move(inputs);
  one.sizes = std::move(sizes);
  one.trace = [forward, specs = specs_of(one)] { return ballast::trace(NoWeights{}, specs, forward); };
  one.save = [](const ballast::Graph& graph, const std::string& path, const ballast::onnx::Options& options) {
    ballast::onnx::save(NoWeights{}, graph, path, options);
  };
  one.forward = std::move(forward);
  cases.push_back(std::move(one));
}

// x [n, 3, 5] with two different n.
inline const std::vector<Sizes> kTwo = {{{"n", 2}}, {{"n", 6}}};
inline const CaseInput kX{{"x", {"n", 3, 5}}, -2, 2};

inline void one(std::vector<Case>& cases, const std::string& name, Function forward) {
  add_case(cases, name, {kX}, std::move(forward), kTwo);
}

/// Products, images, norms (layer_cases.cpp).
void add_layer_operation_cases(std::vector<Case>& cases);
/// Made of others, spectra, cells (more_cases.cpp).
void add_more_cases(std::vector<Case>& cases);
/// Losses, boxes, F64 (loss_cases.cpp).
void add_loss_cases(std::vector<Case>& cases);

}  // namespace onnx_cases
