// SPDX-License-Identifier: Apache-2.0
// A function of whole rows (softmax, log_softmax) along any dimension.
#pragma once

#include "ballast/tensor.h"

namespace ballast::ops {

using RowKernel = void (*)(const float* in, float* out, std::int64_t n);

/// F64, which the kernels of rows do not compute.
[[nodiscard]] Tensor wide_softmax(const char* op, const Tensor& x, std::int64_t dim, bool logarithm);
[[nodiscard]] Tensor softmax_along(const char* op, const Tensor& x, std::int64_t dim, RowKernel kernel);

}  // namespace ballast::ops
