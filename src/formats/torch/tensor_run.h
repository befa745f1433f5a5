// SPDX-License-Identifier: Apache-2.0
// One tensor as torch.save writes it: the same thirty opcodes each time, read at once (decision 0027).
//
//   get _rebuild_tensor_v2
//   ( ( get "storage"  get class  "key"  get location  count  t Q      the storage, by its persistent id
//   offset  (sizes)  (strides)  requires_grad  get OrderedDict ) R     no hooks
//   t R
//
// with a PUT behind each of "key" and the tuples and the dict, into slots in a row, or without.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "checkpoint/value_tree.h"

namespace ballast::torch {

struct TensorRun {
  static constexpr std::size_t kMostDims = 5;

  // Memo slots of what is fetched.
  std::uint32_t kind = 0;
  std::uint32_t storage_class = 0;
  std::uint32_t location = 0;
  std::uint32_t hooks = 0;
  std::string_view key;  // digits
  std::int64_t numel = 0;
  std::int64_t offset = 0;
  std::size_t rank = 0;
  std::array<std::int64_t, 2 * kMostDims> dims{};  // sizes, then strides: none of the numbers is negative
  bool requires_grad = false;
  std::size_t puts = 0;
  std::uint64_t opcodes = 0;
  const char* persistent_id = nullptr;  // the opcode
  const char* call = nullptr;           // the last opcode
};

/// False when what stands behind the function's name is written in any other way, or cannot be. `slot`: where
/// the first PUT would go.
[[nodiscard]] bool read_tensor_run(const char* at, const char* end, std::uint64_t slot, TensorRun& run);

/// A slot of the memo whose value is made when it is fetched, if ever: it holds the place of its run.
[[nodiscard]] constexpr bool is_deferred(Ref value) {
  return (value.bits() & 7U) == 4;
}

[[nodiscard]] constexpr Ref deferred(std::size_t offset) {
  return Ref(std::uint64_t{offset} << 3U | 4U);
}

[[nodiscard]] constexpr std::size_t offset_of(Ref deferred) {
  return static_cast<std::size_t>(deferred.bits() >> 3U);
}

}  // namespace ballast::torch
