// SPDX-License-Identifier: Apache-2.0
#include "tensor/layout.h"

#include <algorithm>

namespace ballast {
namespace {

struct Cutter {
  const Layout& layout;
  const std::function<void(const Box&)>& visit;
  std::uint64_t out = 0;  // output elements handed out so far

  // Rows [begin, end) of dimension `dim`, whole below it.
  void whole_rows(std::size_t dim, std::int64_t offset, std::uint64_t begin, std::uint64_t end,
                  std::uint64_t row) {
    if (begin == end) return;
    const auto rows = static_cast<std::int64_t>(end - begin);
    const auto outermost = layout.begin() + static_cast<std::ptrdiff_t>(rows == 1 ? dim + 1 : dim);
    Box box{offset + static_cast<std::int64_t>(begin) * layout[dim].stride,
            out,
            (end - begin) * row,
            {outermost, layout.end()}};
    if (rows > 1) box.axes.front().size = rows;
    visit(box);
    out += box.count;
  }

  void cut(std::size_t dim, std::int64_t offset, std::uint64_t first, std::uint64_t last) {
    std::uint64_t row = 1;
    for (std::size_t i = dim + 1; i < layout.size(); ++i) row *= static_cast<std::uint64_t>(layout[i].size);
    std::uint64_t begin = first / row;
    const std::uint64_t end = last / row;
    const auto start_of = [&](std::uint64_t i) {
      return offset + static_cast<std::int64_t>(i) * layout[dim].stride;
    };
    if (first % row != 0) {
      if (begin == end) return cut(dim + 1, start_of(begin), first % row, last % row);
      cut(dim + 1, start_of(begin), first % row, row);
      ++begin;
    }
    whole_rows(dim, offset, begin, end, row);
    if (last % row != 0) cut(dim + 1, start_of(end), 0, last % row);
  }
};

}  // namespace

Layout simplified(ShapeView shape, ShapeView strides) {
  // Without elements the other dimensions may be anything, and their products too large.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return {{0, 1}};
  Layout axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    // The outer stride of two that join is the inner's whole extent; the product cannot overflow, both lie
    // inside a storage.
    if (!axes.empty() && axes.back().stride == shape[i] * strides[i]) {
      axes.back() = {axes.back().size * shape[i], strides[i]};
    } else {
      axes.push_back({shape[i], strides[i]});
    }
  }
  return axes;
}

void for_each_box(const Layout& layout, std::uint64_t first, std::uint64_t count,
                  const std::function<void(const Box&)>& visit) {
  if (count == 0) return;
  if (layout.empty()) return visit({0, 0, 1, {}});
  Cutter{layout, visit}.cut(0, 0, first, first + count);
}

}  // namespace ballast
