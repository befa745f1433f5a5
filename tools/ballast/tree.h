// SPDX-License-Identifier: Apache-2.0
// The names of a listing as a tree, split at dots, with sums for every branch.
#pragma once

#include <vector>

#include "output.h"
#include "rows.h"
#include "terminal.h"

namespace tool {

struct TreeOptions {
  bool fold = true;  ///< numbered siblings with equal contents share a line
  int depth = 0;     ///< levels shown; 0 is all
};

void print_tree(Output& out, const Terminal& terminal, const std::vector<Row>& rows,
                const TreeOptions& options);

}  // namespace tool
