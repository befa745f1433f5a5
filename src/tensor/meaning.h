// SPDX-License-Identifier: Apache-2.0
// How stats and diff read the elements of each dtype: as which C++ type, and how many values one element has.
#pragma once

#include <cstdint>

#include "ballast/tensor.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

struct Meaning {
  DType stored;               ///< the real dtype its bytes really are
  std::uint64_t per_element;  ///< how many of those an element is; 0: just bytes
};

[[nodiscard]] Meaning meaning_of(DType dtype);
/// Values of the stored dtype in the whole tensor.
[[nodiscard]] std::uint64_t values_in(const Tensor& tensor);

}  // namespace ballast

#pragma GCC visibility pop
