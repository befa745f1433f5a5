// SPDX-License-Identifier: Apache-2.0
// Where a pickle's opcodes end: what stands behind each, without running any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// `size` is the bytes of a fixed argument, or of the number that says how long the text behind it is.
struct PickleArgument {
  enum Kind : std::uint8_t { none, fixed, length, line, two_lines, stop, unknown } kind = unknown;

  std::uint8_t size = 0;
};

[[nodiscard]] PickleArgument pickle_argument(unsigned char opcode) noexcept;

/// Bytes of the opcode that `code` begins with and of its argument; nullopt when it goes on behind them, or
/// is none.
[[nodiscard]] std::optional<std::size_t> pickle_opcode_length(std::span<const std::byte> code) noexcept;

}  // namespace ballast

#pragma GCC visibility pop
