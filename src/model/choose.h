// SPDX-License-Identifier: Apache-2.0
// Variants and empty optionals: which alternative the file holds.
#pragma once

#include <vector>

#include "model/match.h"

namespace ballast {

struct Chosen {
  std::vector<bool> slots;  // which slots exist
  std::vector<std::uint32_t>
      committed;  // alternatives to be moved into the model, outer ones before inner ones
};

/// Adds what cannot be decided to report.mismatched.
[[nodiscard]] Chosen choose(const Slots& slots, Matcher& matcher, const Prepared& source, Variants variants,
                            LoadReport& report);

}  // namespace ballast
