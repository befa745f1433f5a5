// SPDX-License-Identifier: Apache-2.0
// Where something odd begins.
#pragma once

#include <cstdint>
#include <optional>

#include "ballast/tensor.h"

namespace ballast {

/// The place of the first NaN, row by row; a complex element is two values. Reads up to there.
[[nodiscard]] std::optional<std::uint64_t> first_nan(const Tensor& tensor);
/// The same of an infinity of either sign.
[[nodiscard]] std::optional<std::uint64_t> first_inf(const Tensor& tensor);

}  // namespace ballast
