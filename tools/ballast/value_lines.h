// SPDX-License-Identifier: Apache-2.0
// An object tree as lines: for people with types and one-line values, as JSON with the path of every value.
#pragma once

#include <cstddef>
#include <string>

#include "ballast/value.h"
#include "json.h"
#include "output.h"
#include "terminal.h"

namespace tool {

struct ValueLimits {
  std::size_t depth = 3;      ///< levels below the root
  std::size_t siblings = 20;  ///< items of one container; text only
  bool all = false;           ///< neither applies
};

void print_values(Output& out, const Terminal& terminal, const ballast::Value& root,
                  const ValueLimits& limits);
/// [{"path","kind","type","value" | "size" | "dtype","shape"}…]; every level with `all`, else down to
/// `depth`.
[[nodiscard]] Json values_as_json(const ballast::Value& root, const std::string& path,
                                  const ValueLimits& limits);

}  // namespace tool
