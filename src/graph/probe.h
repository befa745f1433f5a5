// SPDX-License-Identifier: Apache-2.0
// Made-up inputs for a trace: sizes for dimensions with names, and values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/graph.h"

namespace ballast::graph {

/// A dimension with a name.
struct Symbol {
  std::string name;
  std::int64_t multiple_of;  // asked for; 0: to be found out
  std::int64_t at_least;
  std::int64_t at_most;
  bool spatial;       // a height or width, which networks divide
  std::size_t input;  // where it stands
  std::size_t axis;

  [[nodiscard]] bool takes(std::int64_t size) const {
    return size >= at_least && size <= at_most && (multiple_of == 0 || size % multiple_of == 0);
  }
};

using Sizes = std::vector<std::int64_t>;  // of each symbol

/// In order of appearance. Refuses inputs that make no sense (names, ranks, sizes).
[[nodiscard]] std::vector<Symbol> symbols_of(const std::vector<InputSpec>& inputs);

/// Sizes for all symbols to begin with, one after the other until the model takes one: all different, small
/// first, then multiples of what networks divide by.
[[nodiscard]] std::vector<Sizes> first_sizes(const std::vector<Symbol>& symbols);

/// Sizes of one symbol, upwards: every small one, odd, prime and round ones, what lies beside them, multiples
/// of what is known to fit (`fits`), and every one from there on.
[[nodiscard]] Sizes sizes_to_try(const Symbol& symbol, std::int64_t fits);

/// How many sizes one after the other.
inline constexpr std::int64_t kEverySize = 36;
/// Beyond this one, sizes are tried only where that is cheap.
inline constexpr std::int64_t kLargeSize = 1031;

[[nodiscard]] std::vector<Shape> shapes_of(const std::vector<InputSpec>& inputs,
                                           const std::vector<Symbol>& symbols, const Sizes& sizes);

/// Numbers between -1 and 1; zeros for integers, which may be indices; true for BOOL.
[[nodiscard]] Tensor probe_tensor(DType dtype, const Shape& shape, std::size_t seed);

}  // namespace ballast::graph
