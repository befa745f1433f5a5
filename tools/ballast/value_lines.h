// SPDX-License-Identifier: Apache-2.0
// An object tree as lines: for people with types and one-line values, as JSON with the path of every value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ballast/value.h"
#include "json.h"
#include "output.h"
#include "terminal.h"

namespace tool {

struct ValueLimits {
  std::size_t depth = 3;                                ///< levels below the root
  std::size_t siblings = 20;                            ///< items of one container; text only
  bool all = false;                                     ///< neither applies
  std::uint64_t characters = std::uint64_t{16} << 20U;  ///< of text; with more, what follows is left out
};

void print_values(Output& out, const Terminal& terminal, const ballast::Value& root,
                  const ValueLimits& limits);
/// "values": [{"path","kind","type","value" | "size" | "dtype","shape"}…]; every level with `all`, else down
/// to `depth`. "values_cut": true when a limit left some out that were asked for.
void write_values(JsonStream& json, const ballast::Value& root, const std::string& path,
                  const ValueLimits& limits);

}  // namespace tool
