// SPDX-License-Identifier: Apache-2.0
// Many recordings of one model with different sizes, made one graph: what differs between them must follow
// from sizes.
#pragma once

#include <string>
#include <vector>

#include "ballast/graph.h"
#include "graph/probe.h"
#include "graph/solve.h"

namespace ballast::graph {

/// Why graphs cannot be made one: thrown here and by Merger, caught by who knows the dimensions' names.
struct Differs {
  std::string place;
  std::string what;
  Seen seen = {};  ///< numbers that nothing explains, one for each trace
};

/// All integers of a recording that sizes may decide, in one order: attributes, operands, dimensions.
using Numbers = std::vector<std::int64_t>;

/// Throws Differs when `other` is not the same but for these numbers.
[[nodiscard]] Numbers numbers_of(const Graph& base, const Graph& other);

class Merger {
 public:
  /// `traces` are the numbers of each recording, `base` is the first one.
  Merger(const Graph& base, const std::vector<Numbers>& traces, const std::vector<Known>& symbols);

  [[nodiscard]] Graph run();

  /// What is known when a number turned out not to follow from anything.
  [[nodiscard]] const Solver& solver() const noexcept { return solver_; }

 private:
  [[nodiscard]] Seen next();
  [[nodiscard]] SizeExpr solved(const GraphNode& node, const std::string& what, const Seen& seen);
  void merge_attributes(GraphNode& node);
  void merge_dims(std::int64_t id);

  const std::vector<Numbers>& traces_;
  Solver solver_;   // of all sizes known so far
  Solver symbols_;  // of the inputs' alone: what dimensions are called
  std::map<Seen, SizeExpr> called_;
  Graph out_;
  std::size_t at_ = 0;  // in the numbers
};

}  // namespace ballast::graph
