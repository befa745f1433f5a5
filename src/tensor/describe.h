// SPDX-License-Identifier: Apache-2.0
// What the tensor room's own files share about a tensor's form.
#pragma once

#include <cstdint>
#include <string>

#include "ballast/dtype.h"
#include "ballast/shape.h"

namespace ballast {

/// "tensor F32 [2, 3]": the place in messages.
[[nodiscard]] std::string describe(DType dtype, ShapeView shape);

/// Elements of `shape`; throws unless they, and their bits, can be counted in 63 bits.
[[nodiscard]] std::int64_t checked_numel(DType dtype, ShapeView shape);

}  // namespace ballast
