// SPDX-License-Identifier: Apache-2.0
// Python 2's names of modules and functions that moved. Python's unpickler translates them in streams of
// protocol 0 to 2, and in no others.
#pragma once

#include <string_view>

namespace ballast::torch {

struct GlobalName {
  std::string_view module;
  std::string_view name;
};

/// What Python 3 looks up for a name of a stream of protocol 0, 1 or 2.
[[nodiscard]] GlobalName current_name(GlobalName written) noexcept;

}  // namespace ballast::torch
