// SPDX-License-Identifier: Apache-2.0
// Several tensors of one shape walked together: as few dimensions as possible, rows along the one in which
// the first operand (the result) is dense.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "ballast/tensor.h"
#include "ops/parallel.h"

namespace ballast::ops {

inline constexpr std::size_t kMaxOperands = 4;
using Offsets = std::array<std::int64_t, kMaxOperands>;  // elements, one for each operand

class Walk {
 public:
  /// All of one shape; the first one is where results go.
  explicit Walk(std::initializer_list<const Tensor*> operands);

  /// Calls row(offsets, n) for runs of n elements; along a run operand k moves by row_strides()[k].
  template <class Row>
  void rows(const Row& row) const {
    if (empty_) return;
    const std::int64_t parts = (inner_ - 1) / kSegment + 1;
    const std::int64_t grain = inner_ >= kSegment ? 2 : kSegment * 2 / inner_ + 1;
    parallel(outer_ * parts, grain, [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor = at(begin / parts);
      for (std::int64_t unit = begin, part = begin % parts; unit < end; ++unit) {
        Offsets offsets = cursor.offsets;
        const std::int64_t first = part * kSegment;
        for (std::size_t k = 0; k < kMaxOperands; ++k) offsets[k] += first * strides_[k];
        row(offsets, inner_ - first < kSegment ? inner_ - first : kSegment);
        if (++part == parts) {
          part = 0;
          advance(cursor);
        }
      }
    });
  }

  [[nodiscard]] const Offsets& row_strides() const noexcept { return strides_; }

 private:
  static constexpr std::int64_t kSegment = 16384;

  struct Axis {
    std::int64_t size;
    Offsets strides;
  };

  struct Cursor {
    std::vector<std::int64_t> index;
    Offsets offsets;
  };

  [[nodiscard]] Cursor at(std::int64_t row) const;
  void advance(Cursor& cursor) const;

  std::vector<Axis> axes_;  // outermost first, without the row's own
  std::int64_t outer_ = 1;
  std::int64_t inner_ = 1;
  Offsets strides_{};
  bool empty_ = false;
};

}  // namespace ballast::ops
