// SPDX-License-Identifier: Apache-2.0
// What a diff found, for people and for programs.
#pragma once

#include <string>

#include "ballast/diff.h"
#include "fold.h"
#include "session.h"

namespace tool {

struct DiffView {
  std::string a;
  std::string b;
  bool all = false;
  std::string sort = "file";
  bool per_layer = false;
  int depth = 0;
  FoldChoice fold;
};

void print_diff(Session& session, const DiffView& view, const ballast::DiffReport& report);
void print_diff_markdown(Session& session, const DiffView& view, const ballast::DiffReport& report);
void print_diff_json(Session& session, const DiffView& view, const ballast::DiffReport& report);

}  // namespace tool
