// SPDX-License-Identifier: Apache-2.0
// A cast that happens when its bytes are asked for.
#pragma once

#include <memory>

#include "ballast/tensor.h"

namespace ballast {

/// The row-major elements of `source` as `dtype`. read() converts the piece it is asked for and keeps
/// nothing; data() converts all, once. Both dtypes must be real, and differ. `count`, when given, grows each
/// time values are read.
[[nodiscard]] std::shared_ptr<const Storage> lazy_cast(Tensor source, DType dtype,
                                                       std::shared_ptr<CastCount> count = {});

}  // namespace ballast
