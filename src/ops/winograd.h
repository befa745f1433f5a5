// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3×3 with half the multiplications: Winograd's F(2×2, 3×3). A patch of 4×4 pixels and a
// filter become 16 values each, whose products, added up over the channels, are 16 numbers that become 2×2
// results: 16 multiplications a channel where there are 36 (docs/decisions/0032).
#pragma once

#include <cstdint>

#include "ballast/tensor.h"
#include "ops/conv_shapes.h"
#include "ops/kernels.h"

namespace ballast::ops {

/// True for shapes that gain by it on this processor: `input` is [batch, in, height, width].
[[nodiscard]] bool fits_winograd(const ConvShapes& shapes, const Shape& input);

/// Its sums may be larger than a convolution's, and a value that is not finite would reach results whose
/// window does not hold it: only for convolutions whose `bound` (bounds.h) leaves that room.
[[nodiscard]] bool stays_finite_by_patches(double bound);

/// Filters as 16 matrices [in, out], each in panels of two vectors of outputs.
struct WinogradWeight {
  Tensor panels;
};

/// Of an F32 weight [out, in, 3, 3], dense.
[[nodiscard]] WinogradWeight winograd_weight(const Tensor& weight);

/// How images lie on both sides: channels last, or in blocks of as many channels as a vector has.
struct WinogradImages {
  const float* in;
  float* out;
  bool blocks;
};

/// The results are the same bits whatever the number of threads.
void winograd(const ConvShapes& shapes, const Shape& input, const WinogradWeight& weight, ResultLimits limits,
              const WinogradImages& images);

}  // namespace ballast::ops
