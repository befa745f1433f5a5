// SPDX-License-Identifier: Apache-2.0
// A view as the copies see it: as few dimensions as possible, and any row-major range of it cut into boxes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ballast/shape.h"

namespace ballast {

struct Axis {
  std::int64_t size;
  std::int64_t stride;  // elements
  friend bool operator==(Axis, Axis) = default;
};

/// Outermost first; empty means one element.
using Layout = std::vector<Axis>;

/// Without dimensions of size 1, and with neighbours joined that one stride can walk.
[[nodiscard]] Layout simplified(ShapeView shape, ShapeView strides);

/// A part of a layout that is itself a layout: it starts `offset` elements from the view's first and fills
/// `count` output elements from `first`.
struct Box {
  std::int64_t offset;
  std::uint64_t first;
  std::uint64_t count;
  Layout axes;
};

/// Cuts elements [first, first + count) of the row-major order into boxes, at most two for each dimension.
void for_each_box(const Layout& layout, std::uint64_t first, std::uint64_t count,
                  const std::function<void(const Box&)>& visit);

}  // namespace ballast
