// SPDX-License-Identifier: Apache-2.0
#include "graph/probe.h"

#include <algorithm>
#include <limits>
#include <set>

#include "ballast/error.h"
#include "base/fail.h"

namespace ballast::graph {
namespace {

constexpr std::size_t kMostSymbols = 8;

// Of what networks divide a height or width by.
constexpr std::int64_t kUnits[] = {1, 32, 8, 64, 224, 2, 4, 16, 128, 3, 6, 7, 12, 14, 5, 10, 256};
// Of a length or a batch.
constexpr std::int64_t kShortUnits[] = {1, 4, 16, 32};

// Round numbers, primes, and what lies beside a limit somebody may have thought of.
constexpr std::int64_t kTried[] = {
    37,  39,  40,  41,  43,   47,   48,   49,   50,   51,   53,   55,   56,   59,   60,   61,  63,  64,  65,
    67,  71,  77,  78,  79,   80,   81,   95,   96,   97,   99,   100,  101,  111,  112,  113, 127, 128, 129,
    143, 150, 151, 160, 191,  192,  193,  195,  196,  197,  199,  200,  201,  223,  224,  225, 255, 256, 257,
    299, 300, 301, 320, 383,  384,  385,  447,  448,  449,  499,  500,  501,  511,  512,  513, 639, 640, 641,
    767, 768, 769, 999, 1000, 1001, 1023, 1024, 1025, 1031, 2047, 2048, 2049, 4099, 16411};
constexpr std::int64_t kMultiples[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                       13, 15, 16, 17, 19, 23, 29, 31, 32, 33, 37, 64};

// The largest of the usual units that divides it.
std::int64_t unit_of(std::int64_t size) {
  std::int64_t unit = 1;
  for (const std::int64_t one : kUnits)
    if (size % one == 0) unit = std::max(unit, one);
  return unit;
}

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
      if (dim.at_least < 1 || (dim.at_most != 0 && dim.at_most < dim.at_least))
        fail(Errc::invalid_argument, "trace", "dimension {} cannot be at least {} and at most {}",
             quoted(dim.name), dim.at_least, dim.at_most);
      const std::int64_t most = dim.at_most == 0 ? std::numeric_limits<std::int64_t>::max() : dim.at_most;
      const auto found = std::find_if(symbols.begin(), symbols.end(),
                                      [&](const Symbol& symbol) { return symbol.name == dim.name; });
      if (found != symbols.end()) {
        found->multiple_of = std::max(found->multiple_of, dim.multiple_of);
        found->at_least = std::max(found->at_least, dim.at_least);
        found->at_most = std::min(found->at_most, most);
        continue;
      }
      if (symbols.size() == kMostSymbols)
        fail(Errc::too_many, "trace", "more than {} different names of dimensions", kMostSymbols);
      symbols.push_back({dim.name, dim.multiple_of, dim.at_least, most, axis >= 2, i, axis});
    }
  }
  return symbols;
}

std::vector<Sizes> first_sizes(const std::vector<Symbol>& symbols) {
  constexpr std::int64_t kDifferent[kMostSymbols] = {5, 7, 4, 9, 6, 11, 8, 13};
  constexpr std::int64_t kSmaller[kMostSymbols] = {2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<Sizes> all;
  for (const auto* times : {&kDifferent, &kSmaller}) {
    for (const std::int64_t short_unit : kShortUnits) {
      for (const std::int64_t unit : kUnits) {
        Sizes sizes;
        for (std::size_t s = 0; s < symbols.size(); ++s) {
          const Symbol& symbol = symbols[s];
          const std::int64_t step =
              symbol.multiple_of > 0 ? symbol.multiple_of : (symbol.spatial ? unit : short_unit);
          std::int64_t size = (*times)[s] * step;
          if (size < symbol.at_least) size += (symbol.at_least + step - 1) / step * step;
          while (size > symbol.at_most && size > step) size -= step;
          sizes.push_back(size);
        }
        if (std::find(all.begin(), all.end(), sizes) == all.end()) all.push_back(std::move(sizes));
      }
    }
  }
  return all;
}

Sizes sizes_to_try(const Symbol& symbol, std::int64_t fits) {
  std::set<std::int64_t> all(std::begin(kTried), std::end(kTried));
  const std::int64_t unit = symbol.multiple_of > 0 ? symbol.multiple_of : unit_of(fits);
  const auto every = [&](std::int64_t from) {
    for (std::int64_t size = from; size < from + kEverySize; ++size) all.insert(size);
  };
  every(symbol.at_least);
  if (symbol.at_most < std::numeric_limits<std::int64_t>::max() - kEverySize)
    every(std::max(symbol.at_least, symbol.at_most - kEverySize + 1));
  for (const std::int64_t times : kMultiples) {
    all.insert(times * unit);
    all.insert((symbol.at_least + unit - 1) / unit * unit + times * unit);
  }
  std::erase_if(all, [&](std::int64_t size) { return !symbol.takes(size); });
  return {all.begin(), all.end()};
}

std::vector<Shape> shapes_of(const std::vector<InputSpec>& inputs, const std::vector<Symbol>& symbols,
                             const Sizes& sizes) {
  std::vector<Shape> shapes;
  for (const InputSpec& input : inputs) {
    Shape shape;
    for (const InputDim& dim : input.shape) {
      const auto named = std::find_if(symbols.begin(), symbols.end(),
                                      [&](const Symbol& symbol) { return symbol.name == dim.name; });
      shape.push_back(dim.name.empty() ? dim.size : sizes[static_cast<std::size_t>(named - symbols.begin())]);
    }
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
