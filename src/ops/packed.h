// SPDX-License-Identifier: Apache-2.0
// Products with a matrix that is used again and again: its columns lie in panels as wide as a tile of the
// kernels, so that every product reads them in order and packs nothing but its left side. Where oneDNN has no
// order of its own (below AVX-512) it packs the weight at every call (docs/decisions/0023).
#pragma once

#include <cstdint>

#include "ballast/detail/ops/activation.h"
#include "ballast/tensor.h"

namespace ballast::ops {

struct PackedMatrix {
  std::int64_t rows;
  std::int64_t columns;
  Tensor panels;
};

/// True where the kernels' tiles come near what the machine can do: with AVX2 and above.
[[nodiscard]] bool has_fast_tiles();

/// F32 [rows, columns] with any strides.
[[nodiscard]] PackedMatrix packed(const Tensor& matrix);

/// A weight of F32, F16 or BF16, whose own order is not needed any more.
[[nodiscard]] PackedMatrix packed_weight(const char* op, const Tensor& weight);

/// out [rows, b.columns] = activation(a b + bias), both dense; bias may be null. The sums are the same
/// whatever the number of threads.
void multiply(const float* a, std::int64_t rows, const PackedMatrix& b, const float* bias,
              Activation activation, float* out);

}  // namespace ballast::ops
