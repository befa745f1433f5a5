// SPDX-License-Identifier: Apache-2.0
// Elements as text: integers with all their digits, floating ones with as many as tell them from their
// neighbours in their own dtype.
#pragma once

#include <string>
#include <vector>

#include "ballast/tensor.h"

namespace tool::view {

/// In row-major order. "NaN", "Inf" and "-Inf"; a complex one is "1+2j"; what is no number, its bits in
/// hexadecimal.
[[nodiscard]] std::vector<std::string> value_texts(const ballast::Tensor& tensor);

/// Of a - b, computed in double precision.
[[nodiscard]] std::vector<std::string> difference_texts(const ballast::Tensor& a, const ballast::Tensor& b);

}  // namespace tool::view
