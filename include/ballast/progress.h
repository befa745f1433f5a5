// SPDX-License-Identifier: Apache-2.0
// Progress: how work that takes a while tells how far it is. Everything that reads or writes a whole file
// takes one; an empty one costs nothing.
#pragma once

#include <cstdint>
#include <functional>

namespace ballast {

/// Called now and then with bytes done and bytes in all, from one thread at a time but not always the same;
/// throwing from it stops the work, and nothing half-done remains.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace ballast
