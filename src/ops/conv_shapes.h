// SPDX-License-Identifier: Apache-2.0
// A convolution's numbers, checked: what the oneDNN path and the plain loops work from.
#pragma once

#include <cstdint>

#include "ballast/detail/ops/conv.h"
#include "ballast/tensor.h"

namespace ballast::ops {

struct ConvShapes {
  std::int64_t groups;
  std::int64_t in_channels;
  std::int64_t out_channels;
  Dims kernel;
  Dims stride;
  Dims dilation;
  Dims before;  ///< padding; of a transposed convolution, what is cut off
  Dims after;
  Shape output;  ///< [batch, out, size…]
};

/// x is [batch, in, size…].
[[nodiscard]] ConvShapes conv_shapes(const Tensor& x, const Tensor& weight, const ConvArgs& args);
[[nodiscard]] ConvShapes conv_transpose_shapes(const Tensor& x, const Tensor& weight,
                                               const ConvTransposeArgs& args);

/// With plain loops, for what oneDNN does not take: F32 or F64, x and out dense with channels last, weight
/// and bias (when defined) dense and of the same dtype.
void plain_conv(const ConvShapes& shapes, const Tensor& x, const Tensor& weight, const Tensor& bias,
                Tensor& out, bool transposed);

/// activation(out + bias) in place; out is F32 and dense with channels last.
void add_bias(Tensor& out, const Tensor& bias, Activation activation);

}  // namespace ballast::ops
