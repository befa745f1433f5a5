// SPDX-License-Identifier: Apache-2.0
// The numbers behind PyTorch's quantized tensors. Part of ballast::core.
#pragma once

#include "ballast/value.h"

namespace ballast {

/// (q - zero_point) * scale as F32, computed when it is read. Errc::type_mismatch when the tensor is not
/// quantized.
[[nodiscard]] Tensor dequantized(const TensorValue& value);

}  // namespace ballast
