// SPDX-License-Identifier: Apache-2.0
// Several tensors as one, without moving them before somebody reads the result.
#pragma once

#include <cstdint>
#include <span>

#include "ballast/tensor.h"

namespace ballast {

/// Along an existing dimension. One dtype, and shapes equal but for `dim`; anything else is an Error that
/// shows both.
[[nodiscard]] Tensor concat_lazy(std::span<const Tensor> parts, std::int64_t dim);

}  // namespace ballast
