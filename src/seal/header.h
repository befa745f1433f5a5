// SPDX-License-Identifier: Apache-2.0
// The head of an age file: for whom it is, and proof that nobody changed that. Text from strangers: every
// line is checked before any key is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/byte_source.h"
#include "seal/primitives.h"

namespace ballast::seal {

inline constexpr std::string_view kVersionLine = "age-encryption.org/v1\n";

// A thousand recipients of the longest kinds in use; each stanza for a key of ours costs a multiplication.
inline constexpr std::size_t kMaxHeaderBytes = 1U << 20U;
inline constexpr std::size_t kMaxStanzas = 1000;
// 1 GiB of memory and seconds of work: what a passphrase may ask of its reader.
inline constexpr unsigned kMaxLogN = 20;

struct Stanza {
  std::vector<std::string> arguments;  // the kind first; never empty
  std::vector<std::byte> body;
};

struct Header {
  std::vector<Stanza> stanzas;
  std::string authenticated;  // up to and including "---"
  std::array<std::byte, 32> mac{};
  std::uint64_t size = 0;  // in bytes, with its last line break
};

/// Whether the first bytes of a file say that it is age's, in this version or another, or in its armor.
[[nodiscard]] bool is_age(std::string_view first) noexcept;

/// Errc::bad_age, Errc::truncated, Errc::header_too_large, Errc::too_many.
[[nodiscard]] Header read_header(const ByteSource& source);

/// Errc::bad_tag unless the MAC is that of this file key.
void require_mac(const Header& header, const FileKey& key, const std::string& where);

/// The lines of a new file for these stanzas.
[[nodiscard]] std::string write_header(const std::vector<Stanza>& stanzas, const FileKey& key);

}  // namespace ballast::seal
