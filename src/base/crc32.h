// SPDX-License-Identifier: Apache-2.0
// CRC-32 as zip, gzip and PNG use it (IEEE 802.3, reflected, polynomial 0xEDB88320).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// The checksum of what `crc` is the checksum of, followed by `bytes`. Begin with 0.
[[nodiscard]] std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) noexcept;

/// The checksum of A followed by B from those of A and B, and B's length: for pieces computed side by side.
[[nodiscard]] std::uint32_t crc32_combine(std::uint32_t first, std::uint32_t second,
                                          std::uint64_t second_size) noexcept;

namespace detail {
/// The portable way, for machines without carry-less multiplication and for tests.
[[nodiscard]] std::uint32_t crc32_tables(std::uint32_t crc, std::span<const std::byte> bytes) noexcept;
}  // namespace detail

}  // namespace ballast

#pragma GCC visibility pop
