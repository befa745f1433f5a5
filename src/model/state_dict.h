// SPDX-License-Identifier: Apache-2.0
// Which of a file's state dicts is meant: the one `root` names, the only one there is, or the one that fits
// the model.
#pragma once

#include <span>
#include <vector>

#include "ballast/load.h"

namespace ballast {

/// One for each file. `names` are the model's slots. Errc::invalid_argument lists them when the model fits
/// several, or none.
[[nodiscard]] std::vector<Checkpoint> state_dicts_of(std::span<const Checkpoint> files, const Slots& names,
                                                     const detail::CollectSlots& collect,
                                                     const LoadOptions& options);

/// Without a model.
[[nodiscard]] Checkpoint state_dict_of(const Checkpoint& file, const LoadOptions& options);

}  // namespace ballast
