// SPDX-License-Identifier: Apache-2.0
// A tensor's row-major bytes, block by block.
#pragma once

#include <utility>

#include "ballast/tensor.h"
#include "base/blocks.h"

namespace ballast {

/// each(offset, bytes), in order.
template <class Each>
void for_each_block(const Tensor& tensor, Each&& each) {
  for_each_block(tensor, 0, tensor.size_bytes(), std::forward<Each>(each));
}

}  // namespace ballast
