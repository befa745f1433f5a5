// SPDX-License-Identifier: Apache-2.0
// A model or an operation to be exported and run in ONNX Runtime. Cases are written by one program
// (write_cases.cpp) and run by scripts/check-onnx, all in one process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ballast/graph.h"
#include "ballast/load.h"
#include "ballast/onnx.h"
#include "ballast/ops.h"
#include "ballast/safetensors.h"

namespace onnx_cases {

using ballast::DType;
using ballast::InputSpec;
using ballast::Tensor;
using Tensors = std::vector<Tensor>;
using Sizes = std::map<std::string, std::int64_t>;

struct CaseInput {
  InputSpec spec;
  double low = -2;
  double high = 2;
};

struct Case {
  std::string name;
  std::vector<CaseInput> inputs;
  std::function<Tensors(std::span<const Tensor>)> forward;
  std::function<ballast::Graph()> trace;
  std::function<void(const ballast::Graph&, const std::string& path, const ballast::onnx::Options&)> save;
  std::function<ballast::Checkpoint()> weights = {};  ///< of a model: exported with every option too
  std::vector<Sizes> sizes = {{}};
  double tolerance = 1e-4;
  bool all_opsets = true;                  ///< false: those that are run
  std::vector<int> opsets = {11, 13, 17};  ///< those that are run
};

struct NoWeights {
  BALLAST_FIELDS();
};

/// Operations alone.
void add_operation_cases(std::vector<Case>& cases);
/// Layers and the models of examples/models, small.
void add_model_cases(std::vector<Case>& cases);
/// What sizes with names are used for, at many sizes.
void add_size_cases(std::vector<Case>& cases);

/// Values between low and high, the same for the same seed; integers are whole, BOOL is a coin's.
inline Tensor filled(const InputSpec& spec, const ballast::Shape& shape, double low, double high,
                     std::uint64_t seed) {
  ballast::Generator generator(seed);
  const Tensor noise = ballast::rand(shape, generator);
  if (spec.dtype == DType::boolean) return ballast::gt(noise, 0.5);
  const Tensor scaled = noise * (high - low) + low;
  return is_floating(spec.dtype) ? scaled.to(spec.dtype) : ballast::floor(scaled).to(spec.dtype);
}

inline std::vector<InputSpec> specs_of(const Case& one) {
  std::vector<InputSpec> specs;
  for (const CaseInput& input : one.inputs) specs.push_back(input.spec);
  return specs;
}

/// A case of a model with forward(tensors…) and parameters.
template <class Model>
Case model_case(std::string name, std::shared_ptr<Model> model, std::vector<CaseInput> inputs,
                std::vector<Sizes> sizes = {{}}) {
  Case one;
  one.name = std::move(name);
  one.inputs = std::move(inputs);
  one.sizes = std::move(sizes);
  one.forward = [model](std::span<const Tensor> given) {
    return ballast::detail::call_forward(*model, given);
  };
  one.trace = [model, specs = specs_of(one)] { return ballast::trace(*model, specs); };
  one.weights = [model] { return ballast::to_checkpoint(*model); };
  one.save = [model](const ballast::Graph& graph, const std::string& path,
                     const ballast::onnx::Options& options) {
    ballast::onnx::save(*model, graph, path, options);
  };
  return one;
}

}  // namespace onnx_cases
