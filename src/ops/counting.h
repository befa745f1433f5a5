// SPDX-License-Identifier: Apache-2.0
// Rows of the table (operations.h) whose values decide how many rows their results have. Their forms say how
// many there may be; a trace makes a number up, and lets sizes follow it (src/graph/recording.cpp).
#pragma once

#include "ballast/operation.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::operations {

// choose_by_value.cpp
extern const OperationOf<Tensor(const Tensor&)> nonzero;

// boxes.cpp
extern const OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, double)> nms;

[[nodiscard]] bool counts_values(const Operation& operation) noexcept;

}  // namespace ballast::operations

#pragma GCC visibility pop
