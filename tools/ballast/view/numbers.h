// SPDX-License-Identifier: Apache-2.0
// Numbers as the page gets them.
#pragma once

#include <cmath>

#include "json.h"

namespace tool::view {

/// "NaN", "Inf" and "-Inf" for what JSON has no numbers for.
[[nodiscard]] inline Json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Inf" : "-Inf";
  return value;
}

}  // namespace tool::view
