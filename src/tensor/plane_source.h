// SPDX-License-Identifier: Apache-2.0
// Rectangles of two axes of a tensor, read by position: of a file, only what lies in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ballast/tensor.h"

namespace ballast {

/// rows x cols elements; of the last row `last_cols` alone when it is the short end of a folded vector.
struct PlaneForm {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t last_cols = 0;

  /// How many of [col, col + width) there are in `row`.
  [[nodiscard]] std::int64_t present(std::int64_t row, std::int64_t col, std::int64_t width) const {
    const std::int64_t end = row == rows - 1 ? last_cols : cols;
    return std::max<std::int64_t>(0, std::min(col + width, end) - col);
  }
};

class PlaneSource {
 public:
  /// Strides in elements, `first` the number of the first element, counted from the tensor's own first.
  PlaneSource(Tensor tensor, const PlaneForm& form, std::int64_t row_stride, std::int64_t col_stride,
              std::int64_t first);

  [[nodiscard]] const Tensor& tensor() const { return tensor_; }

  [[nodiscard]] std::int64_t row_stride() const { return row_stride_; }

  [[nodiscard]] std::int64_t col_stride() const { return col_stride_; }

  /// The picture with rows and columns exchanged.
  void swap();

  /// Whether more readers than cores are of use.
  [[nodiscard]] bool waits() const;

  /// The rectangle's elements as they are stored, packed row by row: what is not there is 0. It lies inside.
  void read(std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width,
            std::vector<std::byte>& out) const;

  /// The same as numbers, T float or double, what is not there left as it is.
  template <class T>
  void read(std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width,
            std::vector<std::byte>& raw, T* out) const;

 private:
  void read_run(std::int64_t start, std::int64_t count, std::int64_t stride, std::byte* out,
                std::vector<std::byte>& window) const;
  void read_codes(std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width,
                  std::byte* out) const;

  Tensor tensor_;
  PlaneForm form_;
  std::int64_t row_stride_;
  std::int64_t col_stride_;
  std::int64_t first_;
};

/// Whether its numbers need a double.
[[nodiscard]] bool plane_needs_double(DType dtype);

}  // namespace ballast
