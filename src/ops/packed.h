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

/// Multiplications from which threads gain.
inline constexpr std::int64_t kThreadedProduct = std::int64_t{1} << 18U;

/// The left side of a product in the order the tiles read it, for who makes its values one after the other:
/// for each stretch of columns, tile by tile, the rows of a tile side by side. Tiles are of equal height, or
/// one less.
class PackedRows {
 public:
  /// Floats that `rows` rows of `depth` columns take.
  [[nodiscard]] static std::int64_t floats_for(std::int64_t rows, std::int64_t depth);
  /// In `memory` of that size.
  PackedRows(std::int64_t rows, std::int64_t depth, float* memory);

  /// From dense rows.
  void fill(const float* from) const;
  /// From `count` values of one row, from `column` on.
  void put(std::int64_t row, std::int64_t column, const float* values, std::int64_t count) const;

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t depth() const { return depth_; }
  [[nodiscard]] std::int64_t tiles() const { return tiles_; }
  [[nodiscard]] std::int64_t first_row(std::int64_t tile) const { return tile * rows_ / tiles_; }
  [[nodiscard]] float* at(std::int64_t stretch, std::int64_t tile) const;

 private:
  std::int64_t rows_;
  std::int64_t depth_;
  std::int64_t height_;  // room for each tile
  std::int64_t tiles_;
  float* values_;
};

/// Columns of a panel; the last of a matrix may have fewer.
[[nodiscard]] std::int64_t panel_columns();

/// One panel of a product, on the calling thread: out [rows, columns of the panel] = a b, or +=.
struct PanelOut {
  float* first;
  std::int64_t stride;  ///< of its rows
  bool add;
};
void multiply_panel(const PackedRows& a, const PackedMatrix& b, std::int64_t panel, const PanelOut& out);

/// out [rows, b.columns] = activation(a b + bias), both dense; bias may be null. The sums are the same
/// whatever the number of threads.
void multiply(const float* a, std::int64_t rows, const PackedMatrix& b, const float* bias,
              Activation activation, float* out);

}  // namespace ballast::ops
