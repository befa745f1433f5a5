// SPDX-License-Identifier: Apache-2.0
// The numbers of a pooling, checked.
#pragma once

#include "ballast/detail/attribute.h"
#include "ballast/tensor.h"

namespace ballast::ops {

/// One number for each spatial dimension.
struct PoolSizes {
  Dims kernel;
  Dims stride;
  Dims padding;
  Dims dilation;
};

/// `stride` is the kernel's when empty.
[[nodiscard]] PoolSizes pool_sizes(const char* op, const Tensor& x, const Dims& kernel, const Dims& stride,
                                   const Dims& padding, const Dims& dilation);
/// How many windows there are along spatial dimension i of x.
[[nodiscard]] std::int64_t pooled_size(const char* op, const Tensor& x, const PoolSizes& sizes, std::size_t i,
                                       bool ceil_mode);

/// What a trace writes down.
inline ballast::Attributes attributes_of(const PoolSizes& sizes) {
  return {{"kernel", sizes.kernel},
          {"stride", sizes.stride},
          {"padding", sizes.padding},
          {"dilation", sizes.dilation}};
}

}  // namespace ballast::ops
