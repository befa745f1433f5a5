// SPDX-License-Identifier: Apache-2.0
// What the transformers of this folder share: features as heads, and back.
#pragma once

#include "ballast/ops.h"

namespace models {

using ballast::Tensor;

/// [batch, tokens, heads * features] → [batch, heads, tokens, features].
inline Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).permute({0, 2, 1, 3});
}

/// And back.
inline Tensor join_heads(const Tensor& x) {
  return x.permute({0, 2, 1, 3}).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

}  // namespace models
