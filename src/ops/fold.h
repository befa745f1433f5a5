// SPDX-License-Identifier: Apache-2.0
// Reductions that take in one element after the other: in one pass over the memory as it lies.
#pragma once

#include <cstdint>

#include "ballast/tensor.h"

namespace ballast::ops {

enum class Folding : std::uint8_t { sum, prod, max, min };

/// x folded along `dims`, all of them when empty. Sums and products are I64 of integers and BOOL, else F64;
/// the largest and smallest have the dtype of x, or F32 for F16 and BF16.
[[nodiscard]] Tensor folded(const char* op, Folding which, const Tensor& x, const Dims& dims, bool keepdim);

}  // namespace ballast::ops
