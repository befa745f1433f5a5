// SPDX-License-Identifier: Apache-2.0
// Memory that is used again. A model makes and drops the same sizes over and over; fresh pages for each cost
// time, so blocks that results and copies give back serve the next ones.
#pragma once

#include <cstdint>
#include <memory>

#include "ballast/storage.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

enum class Pooled : std::uint8_t {
  result,  ///< of an operation
  copy,    ///< of a tensor
};

/// Not initialised.
[[nodiscard]] std::shared_ptr<Storage> pooled_storage(std::uint64_t size, Pooled use);

/// Whether it is a result's memory, which no caller of ours can have an address of once its last tensor is
/// gone.
[[nodiscard]] bool is_pooled_result(const Storage& storage);

/// How many blocks of memory tensors have taken from the system since the program began. A forward pass that
/// is repeated takes none.
[[nodiscard]] std::uint64_t heap_blocks() noexcept;

}  // namespace ballast

#pragma GCC visibility pop
