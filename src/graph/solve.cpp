// SPDX-License-Identifier: Apache-2.0
#include "graph/solve.h"

#include <algorithm>

namespace ballast::graph {
namespace {

bool constant(const Seen& seen) {
  return std::all_of(seen.begin(), seen.end(), [&](std::int64_t one) { return one == seen[0]; });
}

SizeExpr expression(std::int64_t factor, std::vector<SizeExpr::Dim> dims, std::int64_t added,
                    std::int64_t divisor = 1) {
  SizeExpr size;
  size.constant = added;
  size.divisor = divisor;
  size.terms.push_back({factor, std::move(dims)});
  return size;
}

std::optional<SizeExpr> equal(const Seen& seen, const Known& known) {
  if (known.sizes != seen) return std::nullopt;
  return expression(1, {known.dim}, 0);
}

// factor * n + constant
std::optional<SizeExpr> affine(const Seen& seen, const Known& known) {
  const std::int64_t run = known.sizes[1] - known.sizes[0];
  const std::int64_t rise = seen[1] - seen[0];
  if (run == 0 || rise == 0 || rise % run != 0) return std::nullopt;
  const std::int64_t factor = rise / run;
  const std::int64_t added = seen[0] - factor * known.sizes[0];
  for (std::size_t t = 2; t < kTraces; ++t)
    if (factor * known.sizes[t] + added != seen[t]) return std::nullopt;
  return expression(factor, {known.dim}, added);
}

// factor * n * m * … or n * m * … / divisor
std::optional<SizeExpr> scaled(const Seen& seen, const Seen& product, std::vector<SizeExpr::Dim> dims) {
  if (product[0] == 0 || seen[0] == 0) return std::nullopt;
  const std::int64_t factor = seen[0] >= product[0] ? seen[0] / product[0] : 1;
  const std::int64_t divisor = seen[0] >= product[0] ? 1 : product[0] / seen[0];
  for (std::size_t t = 0; t < kTraces; ++t)
    if (seen[t] * divisor != product[t] * factor) return std::nullopt;
  return expression(factor, std::move(dims), 0, divisor);
}

Seen times(const Seen& a, const Seen& b) {
  Seen product{};
  for (std::size_t t = 0; t < kTraces; ++t) product[t] = a[t] * b[t];
  return product;
}

std::optional<SizeExpr> product_of_some(const Seen& seen, const std::vector<Known>& known) {
  for (const Known& one : known) {
    if (auto found = scaled(seen, one.sizes, {one.dim})) return found;
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    for (std::size_t j = i; j < known.size(); ++j) {
      const Seen two = times(known[i].sizes, known[j].sizes);
      if (auto found = scaled(seen, two, {known[i].dim, known[j].dim})) return found;
      for (std::size_t k = j; k < known.size(); ++k) {
        if (auto found = scaled(seen, times(two, known[k].sizes), {known[i].dim, known[j].dim, known[k].dim}))
          return found;
      }
    }
  }
  return std::nullopt;
}

// n + m + constant
std::optional<SizeExpr> sum_of_two(const Seen& seen, const std::vector<Known>& known) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    for (std::size_t j = i + 1; j < known.size(); ++j) {
      const auto rest = [&](std::size_t t) { return seen[t] - known[i].sizes[t] - known[j].sizes[t]; };
      if (rest(0) != rest(1) || rest(1) != rest(2) || rest(2) != rest(3)) continue;
      SizeExpr size = expression(1, {known[i].dim}, rest(0));
      size.terms.push_back({1, {known[j].dim}});
      return size;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<SizeExpr> solve(const Seen& seen, const std::vector<Known>& first,
                              const std::vector<Known>& others) {
  if (constant(seen)) {
    SizeExpr size;
    size.constant = seen[0];
    return size;
  }
  std::vector<Known> all = first;
  for (const Known& known : others) {
    // A dimension that does not vary, or varies as another does, says nothing new.
    const bool old =
        (known.sizes[0] == known.sizes[1] && known.sizes[1] == known.sizes[2]) ||
        std::any_of(all.begin(), all.end(), [&](const Known& k) { return k.sizes == known.sizes; });
    if (!old) all.push_back(known);
  }
  for (const Known& known : all)
    if (auto found = equal(seen, known)) return found;
  for (const Known& known : all)
    if (auto found = affine(seen, known)) return found;
  if (auto found = product_of_some(seen, all)) return found;
  return sum_of_two(seen, all);
}

}  // namespace ballast::graph
