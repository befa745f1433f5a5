// SPDX-License-Identifier: Apache-2.0
// Pooling over the last dimensions, as many as the kernel has. x is [batch, channels, size…] or [channels,
// size…].
//
// Gives: x's dtype and number of dimensions; the last ones are as many as the window has places there.
// Throws: Errc::shape_mismatch for an x with too few dimensions, a window that does not fit, lists of another
// length than the kernel, and indices or sizes unpooling cannot have; bad_dtype for F64 (max_unpool() takes
// it) and integers (lp_pool() and max_unpool() take them); invalid_argument for a kernel of other than 1 to 3
// dimensions, numbers below 1, a padding of more than half the kernel, a divisor or norm_type of 0;
// offset_out_of_range for an index outside the image; size_overflow.
#pragma once

#include <cstdint>
#include <optional>

#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

struct MaxPoolArgs {
  Dims stride = {};  ///< the kernel's when empty; like the others: one number for all dimensions, or one each
  Dims padding = {0};
  Dims dilation = {1};
  bool ceil_mode = false;
};

[[nodiscard]] Tensor max_pool(const Tensor& x, const Dims& kernel, const MaxPoolArgs& args = {});

/// What max_pool_with_indices() gives.
struct MaxPooled {
  Tensor values;   ///< the largest of each window
  Tensor indices;  ///< I64: the place of each in its image, in row-major order; of equal values the first
};

[[nodiscard]] MaxPooled max_pool_with_indices(const Tensor& x, const Dims& kernel,
                                              const MaxPoolArgs& args = {});

struct MaxUnpoolArgs {
  Dims stride = {};
  Dims padding = {0};
  Dims output_size = {};  ///< of the image; the smallest that can have been pooled when empty
};

/// The way back: values at their indices, zeros elsewhere. An index outside the image is refused.
[[nodiscard]] Tensor max_unpool(const Tensor& x, const Tensor& indices, const Dims& kernel,
                                const MaxUnpoolArgs& args = {});

struct AvgPoolArgs {
  Dims stride = {};
  Dims padding = {0};
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override = {};
};

[[nodiscard]] Tensor avg_pool(const Tensor& x, const Dims& kernel, const AvgPoolArgs& args = {});

struct LpPoolArgs {
  Dims stride = {};
  bool ceil_mode = false;
};

/// The norm_type-th root of the sum of the norm_type-th powers.
[[nodiscard]] Tensor lp_pool(const Tensor& x, double norm_type, const Dims& kernel,
                             const LpPoolArgs& args = {});

/// To `output` sizes, one for each of the last dimensions; -1 keeps a dimension's.
[[nodiscard]] Tensor adaptive_avg_pool(const Tensor& x, const Dims& output);
[[nodiscard]] Tensor adaptive_max_pool(const Tensor& x, const Dims& output);
/// All dimensions after the second become 1.
[[nodiscard]] Tensor global_avg_pool(const Tensor& x);
[[nodiscard]] Tensor global_max_pool(const Tensor& x);

}  // namespace ballast

#pragma GCC visibility pop
