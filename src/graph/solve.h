// SPDX-License-Identifier: Apache-2.0
// Numbers seen in many traces, as an expression of sizes that were different in each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ballast/graph.h"

namespace ballast::graph {

using Seen = std::vector<std::int64_t>;  // one number for each trace

/// A size a file can compute, and what it was in each trace.
struct Known {
  SizeExpr size;
  Seen seen;
};

/// Finds the simplest expression that is right in every trace: a size itself, a * n + b, products, n / d
/// rounded down, sums, what is left by a division. Nullopt when none is, and when several are that differ for
/// sizes which were not traced.
class Solver {
 public:
  /// What equals a size that is known already, or does not vary, is left out.
  void add(const Known& known);
  [[nodiscard]] std::optional<SizeExpr> solve(const Seen& seen) const;

  /// The same with the traces of these numbers alone.
  [[nodiscard]] Solver only(const std::vector<std::size_t>& traces) const;

 private:
  std::vector<Known> known_;
  std::map<Seen, std::size_t> by_seen_;
};

[[nodiscard]] Seen only(const Seen& seen, const std::vector<std::size_t>& traces);

}  // namespace ballast::graph
