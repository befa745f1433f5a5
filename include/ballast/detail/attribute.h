// SPDX-License-Identifier: Apache-2.0
// The settings of an operation in a graph: {"dim", 1}, {"stride", Dims{2, 2}}, {"eps", 1e-5}.
//
// Throws: nothing but std::bad_alloc. Owns: its value. Threads: a value like any other. Costs: a copy of it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ballast/shape.h"

#pragma GCC visibility push(default)

namespace ballast {

/// An argument of an operation that is no tensor.
struct Attribute {
  /// What one can be.
  using Value =
      std::variant<std::int64_t, double, std::string, Dims, std::vector<double>, std::vector<std::string>>;

  std::string name;  ///< as the operation's row calls it
  Value value;       ///< as it was given

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

/// All of them, in the order of the operation's row.
using Attributes = std::vector<Attribute>;

}  // namespace ballast

#pragma GCC visibility pop
