// SPDX-License-Identifier: Apache-2.0
#include "diff_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "rows.h"

namespace tool {
namespace {

using ballast::Distance;
using ballast::TensorDiff;

// Where A is all zero and B is not, or one of two values is not finite, they are infinitely far apart.
double length_of(const TensorDiff& item) {
  if (item.distance.count == 0) return -1;
  if (std::isinf(item.distance.max_abs)) return HUGE_VAL;
  return item.distance.rel_l2.value_or(item.distance.differing == 0 ? 0 : HUGE_VAL);
}

double largest_of(const TensorDiff& item) {
  return item.distance.count == 0 ? -1 : item.distance.max_abs;
}

// Everything that a row shows but the figures; where a NaN stands is of one tensor.
std::string likeness(const TensorDiff& item) {
  if (item.distance.nan_a || item.distance.nan_b) return item.name;
  return fmt::format("{}\n{}\n{}\n{} {}\n{} {}", name(item.change), folded_name(item.name),
                     folded_name(item.other), ballast::info(item.dtype_a).code, fmt::join(item.shape_a, ","),
                     ballast::info(item.dtype_b).code, fmt::join(item.shape_b, ","));
}

void unite(Distance& worst, const Distance& next) {
  worst.count += next.count;
  worst.differing += next.differing;
  worst.outside += next.outside;
  worst.max_abs = std::max(worst.max_abs, next.max_abs);
  worst.max_rel = std::max(worst.max_rel, next.max_rel);
  if (next.max_ulp) worst.max_ulp = std::max(worst.max_ulp.value_or(0), *next.max_ulp);
  if (next.cosine) worst.cosine = std::min(worst.cosine.value_or(1), *next.cosine);
  if (next.rel_l2) worst.rel_l2 = std::max(worst.rel_l2.value_or(0), *next.rel_l2);
}

}  // namespace

std::vector<std::size_t> diff_order(const std::vector<TensorDiff>& tensors, std::string_view order) {
  std::vector<std::size_t> positions(tensors.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  const auto sort = [&](auto less) {
    std::stable_sort(positions.begin(), positions.end(),
                     [&](std::size_t a, std::size_t b) { return less(tensors[a], tensors[b]); });
  };
  if (order == "name")
    sort([](const TensorDiff& a, const TensorDiff& b) { return natural_less(a.name, b.name); });
  else if (order == "max")
    sort([](const TensorDiff& a, const TensorDiff& b) { return largest_of(a) > largest_of(b); });
  else if (order == "rel-l2")
    sort([](const TensorDiff& a, const TensorDiff& b) { return length_of(a) > length_of(b); });
  return positions;
}

void sort_diff(std::vector<TensorDiff>& tensors, std::string_view order) {
  std::vector<TensorDiff> sorted;
  sorted.reserve(tensors.size());
  for (const std::size_t at : diff_order(tensors, order)) sorted.push_back(std::move(tensors[at]));
  tensors = std::move(sorted);
}

std::vector<DiffRow> diff_rows(const std::vector<TensorDiff>& tensors, bool all, bool fold) {
  std::vector<DiffRow> rows;
  std::map<std::string, std::size_t> seen;
  for (const TensorDiff& item : tensors) {
    if (item.change == ballast::Change::equal && !all) continue;
    if (fold) {
      const auto [found, is_new] = seen.emplace(likeness(item), rows.size());
      if (!is_new) {
        DiffRow& row = rows[found->second];
        row.item.name = folded_name(item.name);
        row.item.other = folded_name(item.other);
        unite(row.item.distance, item.distance);
        ++row.tensors;
        continue;
      }
    }
    rows.push_back({item});
  }
  return rows;
}

}  // namespace tool
