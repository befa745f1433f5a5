// SPDX-License-Identifier: Apache-2.0
// Bytes as letters: Base64 in headers of age and in bundles, Bech32 in keys.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::seal {

/// Standard letters, without padding.
[[nodiscard]] std::string base64(std::span<const std::byte> bytes);

/// Nothing for what base64() would not write: padding, other letters, bits that mean nothing.
[[nodiscard]] std::optional<std::vector<std::byte>> from_base64(std::string_view text);

/// The same with '=' up to a multiple of four letters, as JSON has it.
[[nodiscard]] std::string padded_base64(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<std::vector<std::byte>> from_padded_base64(std::string_view text);

/// Bech32 (BIP 173) of any length; in lower case.
[[nodiscard]] std::string bech32(std::string_view prefix, std::span<const std::byte> bytes);

/// Bytes of a text with this prefix (in lower case), all in lower or all in upper case. Nothing where a
/// letter, the checksum or the padding is wrong.
[[nodiscard]] std::optional<std::vector<std::byte>> from_bech32(std::string_view prefix,
                                                                std::string_view text);

}  // namespace ballast::seal
