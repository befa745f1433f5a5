// SPDX-License-Identifier: Apache-2.0
// The state dict inside a checkpoint: training files hold the epoch, the optimizer and much else around the
// weights. Part of ballast::core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"

namespace ballast {

/// A part of the object tree that looks like a model's weights.
struct RootCandidate {
  std::string path;  ///< dotted; empty for the whole file
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

/// Every mapping of names to tensors, and every module, down to three levels; optimizers, schedulers and the
/// like are not looked into. Best first: the whole file, then the names people use (state_dict,
/// model_state_dict, model, …), then all others.
[[nodiscard]] std::vector<RootCandidate> root_candidates(const Checkpoint& checkpoint);

/// "\"model\" (3 tensors, 84 bytes), …", for messages.
[[nodiscard]] std::string to_string(const std::vector<RootCandidate>& candidates);

/// What lies at a dotted path of the tree, its tensors named from there; without a tree, the tensors whose
/// names begin with "path.". Errc::not_found lists the candidates; Errc::type_mismatch when there is
/// something else than tensors by name.
[[nodiscard]] Checkpoint root(const Checkpoint& checkpoint, std::string_view path);

struct FoundRoot {
  Checkpoint checkpoint;
  std::string path;  ///< where it was found; empty when the whole file is taken
};

/// The only candidate; one under another name that is the same tensors does not count. A file without any is
/// taken whole, and so is a dict of parts none of which has a name people use for a state dict, and one such
/// part beside other tensors. Errc::invalid_argument lists them when there are several: a model and its EMA,
/// a generator and its discriminator.
[[nodiscard]] FoundRoot find_root(const Checkpoint& checkpoint);

}  // namespace ballast
