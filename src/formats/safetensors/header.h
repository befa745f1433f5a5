// SPDX-License-Identifier: Apache-2.0
// The header of a Safetensors file, read and checked: the one noun that the reader and edit() stand on. The
// verdicts are those of the reference implementation; docs/formats/safetensors.md lists the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/safetensors.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::safetensors {

/// The length of the header, a number of as many bytes, stands before it.
inline constexpr std::uint64_t kLengthBytes = 8;

/// One tensor as the header describes it. 40 bytes: a header may hold millions.
struct HeaderEntry {
  const char* name_text;
  std::uint64_t begin;  // bytes [begin, end) of the data section
  std::uint64_t end;
  std::uint32_t name_size;
  std::uint32_t rank;
  std::uint32_t first_dim;  // index into Header::dims; a header has fewer than 2^32 bytes
  DType dtype;

  [[nodiscard]] std::string_view name() const noexcept { return {name_text, name_size}; }
};

struct Header {
  std::vector<HeaderEntry> tensors;  // in the order of their data
  std::vector<std::uint64_t> dims;   // of all tensors, one after the other
  /// Sorted by key, each key once.
  std::optional<std::vector<std::pair<std::string_view, std::string_view>>> metadata;
  std::size_t repeated_names = 0;  // entries that a later one of the same name made void
  std::uint64_t data_offset = 0;   // where the data section begins in the file
  std::uint64_t data_size = 0;
  std::shared_ptr<const char[]> text;  // what every string_view above looks at

  [[nodiscard]] std::span<const std::uint64_t> shape(const HeaderEntry& entry) const {
    return std::span(dims).subspan(entry.first_dim, entry.rank);
  }
};

/// Reads and checks the header of the file in `file`; its data section is not touched. `where` names the file
/// in messages.
[[nodiscard]] Header read_header(const Storage& file, const std::string& where, Mode mode);

/// The JSON text between the length and the data, with its own rules; offsets are not looked at. The text is
/// changed, and kept by the result.
[[nodiscard]] Header parse_header_text(std::shared_ptr<char[]> text, std::size_t size,
                                       const std::string& where, Mode mode);

/// Names and metadata keys that come twice: in Mode::reference the last one counts, in Mode::strict they are
/// refused. Sorts the metadata.
void settle_repeated_keys(Header& header, const std::string& where, Mode mode);

[[nodiscard]] std::optional<Metadata> metadata_of(const Header& header);

/// Sorts by offset and checks that the tensors cover [0, end) exactly and have the sizes their shapes ask
/// for; returns `end`.
[[nodiscard]] std::uint64_t check_offsets(Header& header, const std::string& where);

/// Bytes of a row-major tensor, by the reference's arithmetic (left to right, so that [0, max, max] is empty
/// and [max, max, 0] an overflow).
[[nodiscard]] std::uint64_t data_size(DType dtype, std::span<const std::uint64_t> shape,
                                      const std::string& where, std::string_view name);

/// Metadata by which CryptoTensors' files are known (docs/seal.md#cryptotensors).
inline constexpr const char* kCryptoKeysKey = "__crypto_keys__";
inline constexpr const char* kEncryptionKey = "__encryption__";
[[nodiscard]] bool is_crypto_tensors(const Header& header) noexcept;

/// Errc::cannot_decrypt for such a file: cipher text is never taken for weights.
void require_not_encrypted(const Header& header, const std::string& where);

/// Metadata by which packed files are known (docs/formats/packed.md).
inline constexpr const char* kPackedKey = "ballast.packed";
inline constexpr const char* kPackedVersionKey = "ballast.packed.version";

/// Whether a key says how the bytes of its file are stored: packed or encrypted. Only a file's own reader and
/// writer speak of that, and no checkpoint has such a key.
[[nodiscard]] bool says_how_stored(std::string_view key) noexcept;

/// Errc::not_representable when one is there: readers would take the tensors for something else.
void require_none_of_storage(const std::optional<Metadata>& metadata, const std::string& where);

/// Without such keys, which another format's file brought along; a note says so.
void drop_keys_of_storage(Checkpoint& checkpoint);

}  // namespace ballast::safetensors

#pragma GCC visibility pop
