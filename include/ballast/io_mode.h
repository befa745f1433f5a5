// SPDX-License-Identifier: Apache-2.0
// Io: how the bytes of a file come into memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

/// How many times the size of their file all tensors together may show, beside 64 MiB; see OpenOptions.
inline constexpr double kExpansion = 16;

enum class Io : std::uint8_t {
  automatic,  ///< map; on a network file system, where each page fault may be a round trip, read
  map,        ///< tensors are views of the mapped file
  read,       ///< tensors are read by position when they are needed; nothing is mapped
  direct,     ///< read, and past the page cache: what other programs have there stays
};

/// "auto", "map", "read", "direct".
[[nodiscard]] std::vector<std::string> io_names();

/// One of io_names(); Errc::invalid_argument for anything else.
[[nodiscard]] Io io_from_name(std::string_view name);

}  // namespace ballast
