// SPDX-License-Identifier: Apache-2.0
// open() for a file that lies in memory: fuzzing, tests, files inside files.
#pragma once

#include <memory>
#include <string>

#include "ballast/io.h"

namespace ballast {

/// Tensors are views of `bytes`.
[[nodiscard]] Checkpoint open_bytes(std::shared_ptr<const Storage> bytes, const OpenOptions& options = {});

/// open() for a shard: it must be one file (Errc::index_mismatch for an index), and of its ties only the
/// metadata speaks, because the index knows the names that are in the file alone.
[[nodiscard]] Checkpoint open_single(const std::string& path, const OpenOptions& options = {});

}  // namespace ballast
