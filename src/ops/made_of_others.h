// SPDX-License-Identifier: Apache-2.0
// For functions that are made of several operations.
#pragma once

#include "ballast/tensor.h"

namespace ballast::ops {

/// work(x), computed in F32 where x is F16 or BF16: the result is rounded once, not after each step.
template <class Work>
Tensor rounded_once(const Tensor& x, const Work& work) {
  if (x.dtype() != DType::f16 && x.dtype() != DType::bf16) return work(x);
  return work(x.to(DType::f32)).to(x.dtype());
}

}  // namespace ballast::ops
