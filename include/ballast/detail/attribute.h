// SPDX-License-Identifier: Apache-2.0
// The settings of an operation in a graph: {"dim", 1}, {"stride", Dims{2, 2}}, {"eps", 1e-5}.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ballast/shape.h"

#pragma GCC visibility push(default)

namespace ballast {

struct Attribute {
  using Value =
      std::variant<std::int64_t, double, std::string, Dims, std::vector<double>, std::vector<std::string>>;

  std::string name;
  Value value;

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

using Attributes = std::vector<Attribute>;

}  // namespace ballast

#pragma GCC visibility pop
