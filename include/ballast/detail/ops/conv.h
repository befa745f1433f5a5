// SPDX-License-Identifier: Apache-2.0
// Convolutions of 1, 2 and 3 spatial dimensions; the weight's rank says which. Numbers for spatial dimensions
// are lists of one (for all of them) or one each. F64 images are computed in F64, by plain loops; a weight
// may be narrower, and is never F64 beside narrower images.
//
// Gives: [batch, out, size…] in x's dtype, without batch where x has none. Throws: Errc::shape_mismatch for
// an image, weight, bias and groups that do not fit each other, and where nothing would be left; bad_dtype
// unless all are floating; invalid_argument for a stride or dilation below 1, a padding below 0, "same" with
// a stride, an `output_padding` that is too large, and an undefined x or weight; size_overflow beyond all
// measure.
#pragma once

#include <cstdint>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/cache.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

struct ConvArgs {
  Dims stride = {1};
  Dims padding = {0};
  bool same = false;  ///< pad so that the size stays: padding is ignored, the stride must be 1
  Dims dilation = {1};
  std::int64_t groups = 1;
  PadMode padding_mode = PadMode::constant;
  Activation activation = {};
  OpCache* cache = nullptr;
};

/// x [batch, in, size…] (or without batch), weight [out, in / groups, kernel…], bias [out] when defined.
[[nodiscard]] Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                          const ConvArgs& args = {});

struct ConvTransposeArgs {
  Dims stride = {1};
  Dims padding = {0};
  Dims output_padding = {0};
  Dims dilation = {1};
  std::int64_t groups = 1;
  Activation activation = {};
  OpCache* cache = nullptr;
};

/// weight [in, out / groups, kernel…].
[[nodiscard]] Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                    const ConvTransposeArgs& args = {});

/// Along time: x [time, batch, in], weight [kernel, in, out], bias [out].
[[nodiscard]] Tensor conv_tbc(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              std::int64_t pad = 0);

}  // namespace ballast

#pragma GCC visibility pop
