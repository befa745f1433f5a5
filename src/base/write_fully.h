// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ballast {

/// All of `bytes` at `offset` of an open file, however many calls of the system that takes. `path` is for
/// messages.
void write_fully(int descriptor, const std::string& path, std::uint64_t offset,
                 std::span<const std::byte> bytes);

}  // namespace ballast
