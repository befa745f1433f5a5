// SPDX-License-Identifier: Apache-2.0
// First values for a model's tensors, as PyTorch's layers draw them (the distributions, not the numbers).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/module.h"

namespace ballast {

namespace detail {
std::vector<std::string> initialize(const Slots& slots, std::uint64_t seed);
}

/// Gives every tensor that has no data yet its first value: what was loaded stays. The same seed gives the
/// same model everywhere. Tensors outside layers become zeros. Returns the paths of those it filled.
template <Module Model>
std::vector<std::string> init(Model& model, std::uint64_t seed = 0) {
  return detail::initialize(detail::collect_slots(model, detail::Collector::Alternatives::held_only), seed);
}

}  // namespace ballast
