// SPDX-License-Identifier: Apache-2.0
// Numbers seen in several traces, as an expression of sizes that were different in each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ballast/graph.h"
#include "graph/probe.h"

namespace ballast::graph {

using Seen = std::array<std::int64_t, kTraces>;

/// A dimension and its size in each trace.
struct Known {
  SizeExpr::Dim dim;
  Seen sizes;
};

/// `first` are tried before `others` are. Nullopt when nothing simple fits.
[[nodiscard]] std::optional<SizeExpr> solve(const Seen& seen, const std::vector<Known>& first,
                                            const std::vector<Known>& others = {});

}  // namespace ballast::graph
