// SPDX-License-Identifier: Apache-2.0
// Small pieces of text: numbers for people, widths on a screen, the nearest word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tool {

/// "512 B", "97.8 MiB": three significant digits, powers of 1024.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);
/// "942", "25.6 M", "7.24 B": three significant digits, powers of 1000.
[[nodiscard]] std::string human_count(std::uint64_t count);
/// "25,557,032"
[[nodiscard]] std::string grouped(std::uint64_t number);
/// "1 tensor", "12 tensors", "1,204 tensors"
[[nodiscard]] std::string counted(std::uint64_t number, std::string_view noun);
/// "40 ms", "1.4 s", "12 s", "3 min 20 s"
[[nodiscard]] std::string human_seconds(double seconds);

/// "[3, 17]": value number `place`, row by row, of a tensor of that shape with `count` values (a complex
/// element has two).
[[nodiscard]] std::string index_text(std::uint64_t place, std::span<const std::int64_t> shape,
                                     std::uint64_t count);

/// Columns the UTF-8 text takes on a screen: wide characters two, combining ones none.
[[nodiscard]] std::size_t screen_width(std::string_view text);

/// The candidate that `word` most likely was meant to be; empty when none is near.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace tool
