// SPDX-License-Identifier: Apache-2.0
// The part of a load that knows little of the model: root, renames and rules, wrapper prefixes, the filter,
// and whose layout the file has.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ballast/load.h"

namespace ballast {

struct Prepared {
  Checkpoint checkpoint;
  std::vector<std::string> origins;  // for each tensor the key or keys of the file it comes from
  std::vector<bool> wanted;          // passes include and exclude
  Adapter adapter = Adapter::pytorch;
};

/// Several files are one checkpoint, the state dict of each found by itself. Adds renamed keys and notes to
/// the report.
[[nodiscard]] Prepared prepare(const Slots& slots, std::span<const Checkpoint> files,
                               const LoadOptions& options, LoadReport& report);

}  // namespace ballast
