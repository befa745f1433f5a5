// SPDX-License-Identifier: Apache-2.0
// The part of a load that knows little of the model: renames and rules, wrapper prefixes, the filter, and
// whose layout the file has.
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
  std::string stripped;              // "module.", where all keys began with it
  Adapter adapter = Adapter::pytorch;
};

/// Several state dicts are one checkpoint. Adds renamed keys and notes to the report.
[[nodiscard]] Prepared prepare(const Slots& slots, const std::vector<Checkpoint>& state_dicts,
                               const LoadOptions& options, LoadReport& report);

/// Whether the model has a member whose path begins with `prefix` ("module.").
[[nodiscard]] bool has_member(const Slots& slots, std::string_view prefix);

/// Which paths of a model the file may have tensors for, whatever the positions in its vectors.
[[nodiscard]] detail::FileHas file_has(const Prepared& source);

}  // namespace ballast
