// SPDX-License-Identifier: Apache-2.0
// Batches of matrices that broadcast together: where the i-th matrix of each operand begins.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "ballast/tensor.h"

namespace ballast::ops {

/// Everything but the last two dimensions.
[[nodiscard]] Shape batch_shape(const Tensor& x);

class Batches {
 public:
  /// `shape` is what the tensors' batch dimensions broadcast to.
  Batches(const Shape& shape, std::initializer_list<const Tensor*> tensors);

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }

  /// Elements from the operand's first to its matrix number `index`.
  [[nodiscard]] std::int64_t offset(std::size_t operand, std::int64_t index) const;

 private:
  Shape shape_;
  std::int64_t count_;
  std::vector<Strides> strides_;
};

}  // namespace ballast::ops
