// SPDX-License-Identifier: Apache-2.0
// Storage whose bytes are computed piece by piece, whenever they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ballast/storage.h"

namespace ballast {

/// Writes bytes [offset, offset + out.size()); the same ones each time, from any thread.
using MakeBytes = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

using Storages = std::vector<std::shared_ptr<const Storage>>;

/// read() computes what it is asked for and keeps nothing; data() computes all, once. `sources`: what the
/// bytes are computed from, for check_unchanged().
[[nodiscard]] std::shared_ptr<const Storage> streamed_storage(std::uint64_t size, MakeBytes make,
                                                              Storages sources);

}  // namespace ballast
