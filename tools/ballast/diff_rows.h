// SPDX-License-Identifier: Apache-2.0
// The tensors of a diff in the order somebody wants to see them, and repeated blocks as one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/diff.h"

namespace tool {

/// Positions in the order that sort_diff() would bring them to.
[[nodiscard]] std::vector<std::size_t> diff_order(const std::vector<ballast::TensorDiff>& tensors,
                                                  std::string_view order);

/// "file" (as they are), "name", "max" or "rel-l2" (largest first; what has no values to compare comes last).
void sort_diff(std::vector<ballast::TensorDiff>& tensors, std::string_view order);

struct DiffRow {
  ballast::TensorDiff
      item;  ///< numbers in names are '#' where `tensors` > 1; counts are sums, figures the worst
  std::uint64_t tensors = 1;
};

/// `fold`: tensors that differ only in a number, and in the same way, share a row. Equal ones only with
/// `all`.
[[nodiscard]] std::vector<DiffRow> diff_rows(const std::vector<ballast::TensorDiff>& tensors, bool all,
                                             bool fold);

}  // namespace tool
