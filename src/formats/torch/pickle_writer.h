// SPDX-License-Identifier: Apache-2.0
// A state dict or a tree of Values as a protocol-2 pickle of the kind torch.load(weights_only=True) accepts.
// Nothing recurses; shared containers and cycles are written as such; storages are numbered in the order of
// their first appearance, which PyTorch relies on.
#pragma once

#include <string>

#include "ballast/checkpoint.h"
#include "ballast/torch.h"
#include "ballast/value.h"
#include "formats/torch/storage_table.h"

namespace ballast::torch {

/// `storages` comes empty and holds what goes into `data/` afterwards. Errc::not_representable names the
/// dotted path of the value.
[[nodiscard]] std::string pickle_tree(const Value& root, const SaveOptions& options, StorageTable& storages);

/// The checkpoint's tensors as an OrderedDict (or plain dict), in order.
[[nodiscard]] std::string pickle_tensors(const Checkpoint& checkpoint, const SaveOptions& options,
                                         StorageTable& storages);

}  // namespace ballast::torch
