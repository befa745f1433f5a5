// SPDX-License-Identifier: Apache-2.0
// Values from one real dtype to another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ballast/dtype.h"

namespace ballast {

/// Converts `count` packed elements on several threads. Rounds to nearest even; NaN stays NaN; floating to integer truncates and
/// saturates, NaN becomes 0. Both dtypes must be real (is_real); neither buffer needs to be aligned.
void cast_elements(DType from, const std::byte* in, DType to, std::byte* out, std::uint64_t count);

}  // namespace ballast
