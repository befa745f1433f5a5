// SPDX-License-Identifier: Apache-2.0
// Made-up inputs for a trace: sizes for dimensions with names, and values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ballast/graph.h"

namespace ballast::graph {

/// Of a model with named dimensions, at most; three tell every a * n + b from everything else when there is
/// one name.
inline constexpr std::size_t kTraces = 4;

[[nodiscard]] constexpr std::size_t trace_count(std::size_t symbols) noexcept {
  return symbols == 0 ? 1 : (symbols == 1 ? kTraces - 1 : kTraces);
}

/// The sizes a named dimension has in each trace, before they are multiplied.
struct Symbol {
  std::string name;
  std::array<std::int64_t, kTraces> sizes;
  std::int64_t multiple_of;  // asked for; 0: to be found out
  bool spatial;              // a height or width, which networks divide: traced large first
  std::size_t input;         // where it stands
  std::size_t axis;
};

/// In order of appearance. Refuses inputs that make no sense (names, ranks, sizes).
[[nodiscard]] std::vector<Symbol> symbols_of(const std::vector<InputSpec>& inputs);

/// Factors to try, one after the other, for the sizes of `symbol`.
[[nodiscard]] std::vector<std::int64_t> factors_for(const Symbol& symbol);

[[nodiscard]] std::vector<Shape> shapes_of(const std::vector<InputSpec>& inputs,
                                           const std::map<std::string, std::int64_t>& sizes);

/// Numbers between -1 and 1; zeros for integers, which may be indices; true for BOOL.
[[nodiscard]] Tensor probe_tensor(DType dtype, const Shape& shape, std::size_t seed);

}  // namespace ballast::graph
