// SPDX-License-Identifier: Apache-2.0
// What a file is, by its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ballast/byte_source.h"

namespace ballast {

enum class Family : std::uint8_t {
  safetensors,
  bpk,
  mpk,
  gzip,  // hopefully with an mpk inside
  npy,
  npz,
  onnx,
  index,  // JSON: hopefully a list of shards
  torch,  // everything else: its reader says best what it is not
};

/// How many bytes from the beginning tell what a file is of which these are the first kMagicBytes: the name
/// of a zip archive's first record, which says much, may be longer.
[[nodiscard]] std::size_t telling_bytes(std::span<const std::byte> head) noexcept;

/// What open() takes it for.
[[nodiscard]] Family family_of(const ByteSource& source);

/// `head` holds kMagicBytes (base/magic.h) or telling_bytes(), or all of a smaller file. A name counts only
/// for what could be nothing else.
[[nodiscard]] Family family_of(std::span<const std::byte> head, std::uint64_t size, std::string_view path);

}  // namespace ballast
