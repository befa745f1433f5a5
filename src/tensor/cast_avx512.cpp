// SPDX-License-Identifier: Apache-2.0
#include "tensor/cast_kernels.h"

namespace ballast {

CastKernel avx512_kernel(DType /*from*/, DType /*to*/) noexcept { return nullptr; }

}  // namespace ballast
