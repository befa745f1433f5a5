// SPDX-License-Identifier: Apache-2.0
// open() for a file that lies in memory: fuzzing, tests, files inside files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ballast/io.h"

namespace ballast {

/// Tensors are views of `bytes`.
[[nodiscard]] Checkpoint open_bytes(std::shared_ptr<const Storage> bytes, const OpenOptions& options = {});

/// By the first bytes; a name counts only for what could be nothing else.
[[nodiscard]] bool is_safetensors(std::span<const std::byte> head, std::uint64_t size, std::string_view path);

}  // namespace ballast
