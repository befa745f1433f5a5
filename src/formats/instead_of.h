// SPDX-License-Identifier: Apache-2.0
// What to do with a tensor whose dtype a format does not have: the end of the sentence that refuses it.
#pragma once

#include <string_view>

#include "ballast/dtype.h"

namespace ballast {

// Casts are defined between real numbers alone; what else PyTorch has, its own files hold.
inline std::string_view instead_of(DType dtype) {
  return is_real(dtype) ? "; cast it (dtype for floating-point tensors, a rule's cast for others)"
                        : "; exclude it, or write a .pt file, which holds it";
}

}  // namespace ballast
