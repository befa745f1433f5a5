// SPDX-License-Identifier: Apache-2.0
#include "graph/probe.h"

#include <algorithm>
#include <set>

#include "ballast/display.h"
#include "base/fail.h"

namespace ballast::graph {
namespace {

// No size follows from another by a * n + b, and products of two are like no third.
constexpr std::array<std::array<std::int64_t, kTraces>, 8> kSizes = {{{2, 3, 5, 4},
                                                                      {3, 5, 4, 7},
                                                                      {4, 2, 7, 5},
                                                                      {5, 7, 3, 2},
                                                                      {7, 4, 6, 3},
                                                                      {6, 9, 2, 5},
                                                                      {9, 8, 11, 4},
                                                                      {11, 6, 8, 7}}};

}  // namespace

std::vector<Symbol> symbols_of(const std::vector<InputSpec>& inputs) {
  if (inputs.empty()) fail(Errc::invalid_argument, "trace", "no inputs: name them and their shapes");
  std::vector<Symbol> symbols;
  std::set<std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& input = inputs[i];
    if (input.name.empty()) fail(Errc::bad_name, "trace", "input {} has no name", i);
    if (!names.insert(input.name).second)
      fail(Errc::duplicate_key, "trace", "two inputs are called {}", quoted(input.name));
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
      const InputDim& dim = input.shape[axis];
      if (dim.name.empty()) {
        if (dim.size < 1)
          fail(Errc::invalid_argument, "trace", "dimension {} of input {} is {}: give a size or a name", axis,
               quoted(input.name), dim.size);
        continue;
      }
      if (dim.multiple_of < 0)
        fail(Errc::invalid_argument, "trace", "dimension {} cannot be a multiple of {}", quoted(dim.name),
             dim.multiple_of);
      const auto found = std::find_if(symbols.begin(), symbols.end(),
                                      [&](const Symbol& symbol) { return symbol.name == dim.name; });
      if (found != symbols.end()) {
        found->multiple_of = std::max(found->multiple_of, dim.multiple_of);
        continue;
      }
      if (symbols.size() == kSizes.size())
        fail(Errc::too_many, "trace", "more than {} different names of dimensions", kSizes.size());
      symbols.push_back({dim.name, kSizes[symbols.size()], dim.multiple_of, axis >= 2, i, axis});
    }
  }
  return symbols;
}

std::vector<std::int64_t> factors_for(const Symbol& symbol) {
  if (symbol.multiple_of > 0) return {symbol.multiple_of};
  if (symbol.spatial) return {32, 8, 1, 64, 128};
  return {1, 4, 16, 32};
}

std::vector<Shape> shapes_of(const std::vector<InputSpec>& inputs,
                             const std::map<std::string, std::int64_t>& sizes) {
  std::vector<Shape> shapes;
  for (const InputSpec& input : inputs) {
    Shape shape;
    for (const InputDim& dim : input.shape) shape.push_back(dim.name.empty() ? dim.size : sizes.at(dim.name));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

Tensor probe_tensor(DType dtype, const Shape& shape, std::size_t seed) {
  if (dtype == DType::boolean) {
    Tensor all = Tensor::empty(dtype, shape);
    std::fill_n(all.mutable_data(), all.numel(), std::byte{1});
    return all;
  }
  if (!is_floating(dtype)) return Tensor::zeros(dtype, shape);
  Tensor noise = Tensor::empty(DType::f32, shape);
  auto* to = reinterpret_cast<float*>(noise.mutable_data());
  std::uint32_t state = 0x9E3779B9U + static_cast<std::uint32_t>(seed);
  for (std::int64_t i = 0; i < noise.numel(); ++i) {
    state = state * 1664525U + 1013904223U;
    to[i] = static_cast<float>(state >> 8U) * 0x1p-23F - 1;
  }
  return noise.to(dtype);
}

}  // namespace ballast::graph
