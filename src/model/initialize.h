// SPDX-License-Identifier: Apache-2.0
// Values for parameters no file had: PyTorch's distributions for the layer, from a generator seeded by the
// seed and the parameter's path, so that every run and every machine gets the same.
#pragma once

#include <cstdint>

#include "ballast/detail/slots.h"

namespace ballast {

/// Of the slot's shape and dtype. Errc::invalid_argument when it has no shape.
[[nodiscard]] Tensor initial_value(const Slot& slot, const Slots& all, std::uint64_t seed);

}  // namespace ballast
