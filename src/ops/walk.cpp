// SPDX-License-Identifier: Apache-2.0
#include "ops/walk.h"

#include <algorithm>

namespace ballast::ops {

Walk::Walk(std::initializer_list<const Tensor*> operands) {
  const Tensor& first = **operands.begin();
  empty_ = first.numel() == 0;
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < first.rank(); ++i) {
    if (first.shape()[i] == 1) continue;
    Axis axis{first.shape()[i], {}};
    std::size_t k = 0;
    for (const Tensor* operand : operands) axis.strides[k++] = operand->strides()[i];
    axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.strides[0] > b.strides[0]; });
  for (const Axis& axis : axes) {
    const auto joins = [&](std::size_t k) { return axes_.back().strides[k] == axis.strides[k] * axis.size; };
    if (!axes_.empty() && joins(0) && joins(1) && joins(2) && joins(3)) {
      axes_.back() = {axes_.back().size * axis.size, axis.strides};
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty()) return;
  inner_ = axes_.back().size;
  strides_ = axes_.back().strides;
  axes_.pop_back();
  for (const Axis& axis : axes_) outer_ *= axis.size;
}

Walk::Cursor Walk::at(std::int64_t row) const {
  Cursor cursor{std::vector<std::int64_t>(axes_.size()), {}};
  for (std::size_t i = axes_.size(); i-- > 0;) {
    cursor.index[i] = row % axes_[i].size;
    row /= axes_[i].size;
    for (std::size_t k = 0; k < kMaxOperands; ++k) cursor.offsets[k] += cursor.index[i] * axes_[i].strides[k];
  }
  return cursor;
}

void Walk::advance(Cursor& cursor) const {
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const Axis& axis = axes_[i];
    const bool wraps = ++cursor.index[i] == axis.size;
    const std::int64_t steps = wraps ? 1 - axis.size : 1;
    for (std::size_t k = 0; k < kMaxOperands; ++k) cursor.offsets[k] += steps * axis.strides[k];
    if (!wraps) return;
    cursor.index[i] = 0;
  }
}

}  // namespace ballast::ops
