// SPDX-License-Identifier: Apache-2.0
// What the header says, checked against itself and against the file: names, offsets, sizes.
#include <algorithm>

#include "ballast/detail/name_index.h"
#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/json_scanner.h"
#include "containers/magic.h"
#include "formats/safetensors/header.h"

namespace ballast::safetensors {
namespace {

// Beyond it, positions in bits would not fit into 64 bits. No real file comes near.
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 60U;

bool earlier(const HeaderEntry& a, const HeaderEntry& b) {
  if (a.begin != b.begin) return a.begin < b.begin;
  if (a.end != b.end) return a.end < b.end;
  return a.name_text < b.name_text;  // empty tensors at one place: as they stand in the header
}

[[noreturn]] void bad_offsets(const HeaderEntry& entry, const HeaderEntry* previous, std::uint64_t expected,
                              const std::string& where) {
  const std::string tensor =
      fmt::format("tensor {}: data_offsets [{}, {}]", quoted(entry.name()), entry.begin, entry.end);
  if (entry.begin == expected) fail(Errc::offset_out_of_range, where, "{} end before they begin", tensor);
  if (entry.begin > expected) {
    fail(Errc::gap, where, "{} leave {} bytes from {} to nobody (no holes are allowed)", tensor,
         entry.begin - expected, expected);
  }
  fail(Errc::overlap, where, "{} overlap tensor {}, which ends at {} (each byte belongs to one tensor)",
       tensor, quoted(previous == nullptr ? "" : previous->name()), expected);
}

[[noreturn]] void repeated_name(const Header& header, const HeaderEntry& first, const HeaderEntry& second,
                                const std::string& where) {
  const auto place = [&](const HeaderEntry& entry) {
    return kLengthBytes + static_cast<std::uint64_t>(entry.name_text - header.text.get());
  };
  fail(Errc::duplicate_key, where, "tensor {} is there twice in the header, at bytes {} and {} of the file",
       quoted(second.name()), place(first), place(second));
}

// The first bytes, when the file is not what it should be: often it is something well known.
void refuse_strangers(const Storage& file, const std::string& where) {
  std::vector<std::byte> first(
      static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), containers::kMagicBytes)));
  file.read(0, first);
  const std::string_view what = containers::what_is_it(first);
  if (!what.empty()) fail(Errc::unknown_format, where, "is not a Safetensors file: it looks like {}", what);
}

// Then it is a Safetensors file that was cut, whatever its length bytes look like: 640 reads as a pickle's
// first two.
bool begins_object(const Storage& file) {
  std::byte first{};
  if (file.size() > kLengthBytes) file.read(kLengthBytes, {&first, 1});
  return first == std::byte{'{'};
}

std::uint64_t header_length(const Storage& file, const std::string& where) {
  if (file.size() < kLengthBytes) {
    refuse_strangers(file, where);
    if (file.size() == 0) fail(Errc::truncated, where, "is empty (a download that never began?)");
    fail(Errc::truncated, where, "has {} bytes, a Safetensors file begins with a length of {}", file.size(),
         kLengthBytes);
  }
  std::byte first[kLengthBytes];
  file.read(0, first);
  const auto length = load_le<std::uint64_t>(first);
  if (length > kMaxHeaderBytes) {
    refuse_strangers(file, where);
    fail(Errc::header_too_large, where,
         "promises a header of {} bytes, the limit is {} (not a Safetensors file?)", length, kMaxHeaderBytes);
  }
  if (length > file.size() - kLengthBytes) {
    if (!begins_object(file)) refuse_strangers(file, where);
    fail(Errc::truncated, where, "has {} bytes, its header alone should end at {} (cut short?)", file.size(),
         kLengthBytes + length);
  }
  return length;
}

void settle_metadata(Header& header, const std::string& where, Mode mode) {
  if (!header.metadata) return;
  auto& pairs = *header.metadata;
  const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto twice = std::adjacent_find(pairs.begin(), pairs.end(), same_key);
  if (twice == pairs.end()) return;
  if (mode == Mode::strict)
    fail(Errc::duplicate_key, where, "metadata key {} is there twice", quoted(twice->first));
  // Of equal keys the last one is kept: walking backwards, it is the first.
  pairs.erase(pairs.begin(), std::unique(pairs.rbegin(), pairs.rend(), same_key).base());
}

}  // namespace

void settle_repeated_keys(Header& header, const std::string& where, Mode mode) {
  settle_metadata(header, where, mode);
  std::vector<HeaderEntry>& tensors = header.tensors;
  detail::NameIndex index;
  index.put_all(
      tensors.size(), [&](std::size_t i) { return hash_name(tensors[i].name()); },
      [&](std::size_t i, std::size_t j) { return tensors[i].name() == tensors[j].name(); },
      [&](std::size_t i, std::size_t j) {
        if (mode == Mode::strict) repeated_name(header, tensors[i], tensors[j], where);
        tensors[i].name_text = nullptr;
        ++header.repeated_names;
      });
  if (header.repeated_names > 0) {
    std::erase_if(tensors, [](const HeaderEntry& entry) { return entry.name_text == nullptr; });
  }
}

std::uint64_t data_size(DType dtype, std::span<const std::uint64_t> shape, const std::string& where,
                        std::string_view name) {
  std::uint64_t count = 1;
  bool overflow = false;
  for (const std::uint64_t dim : shape) overflow = __builtin_mul_overflow(count, dim, &count) || overflow;
  overflow = __builtin_mul_overflow(count, std::uint64_t{info(dtype).bits}, &count) || overflow;
  if (overflow) {
    fail(Errc::size_overflow, where, "tensor {}: {} [{}] has more bits than 64 bits can count", quoted(name),
         info(dtype).code, fmt::join(shape, ", "));
  }
  if (count % 8 != 0) {
    fail(Errc::misaligned, where, "tensor {}: {} [{}] is {} bits, which do not end on a byte", quoted(name),
         info(dtype).code, fmt::join(shape, ", "), count);
  }
  return count / 8;
}

std::uint64_t check_offsets(Header& header, const std::string& where) {
  std::vector<HeaderEntry>& tensors = header.tensors;
  if (!std::is_sorted(tensors.begin(), tensors.end(), earlier))
    std::sort(tensors.begin(), tensors.end(), earlier);
  std::uint64_t expected = 0;
  const HeaderEntry* previous = nullptr;
  for (const HeaderEntry& entry : tensors) {
    if (entry.begin != expected || entry.end < entry.begin) bad_offsets(entry, previous, expected, where);
    const std::uint64_t needed = data_size(entry.dtype, header.shape(entry), where, entry.name());
    if (entry.end - entry.begin != needed) {
      fail(Errc::size_mismatch, where, "tensor {}: {} [{}] needs {} bytes, data_offsets [{}, {}] give {}",
           quoted(entry.name()), info(entry.dtype).code, fmt::join(header.shape(entry), ", "), needed,
           entry.begin, entry.end, entry.end - entry.begin);
    }
    expected = entry.end;
    previous = &entry;
  }
  return expected;
}

Header read_header(const Storage& file, const std::string& where, Mode mode) {
  if (file.size() > kMaxFileBytes)
    fail(Errc::size_overflow, where, "has {} bytes, more than any real file", file.size());
  const auto length = static_cast<std::size_t>(header_length(file, where));
  const std::shared_ptr<char[]> text(new char[length + JsonScanner::kPadding]);
  file.read(kLengthBytes, std::as_writable_bytes(std::span(text.get(), length)));
  std::fill_n(text.get() + length, JsonScanner::kPadding, '\0');

  Header header = parse_header_text(text, length, where, mode);
  settle_repeated_keys(header, where, mode);
  const std::uint64_t promised = check_offsets(header, where);
  header.data_offset = kLengthBytes + length;
  header.data_size = file.size() - header.data_offset;
  if (promised > header.data_size) {
    fail(
        Errc::truncated, where,
        "has {} bytes, {} of them data, where its header promises {} (cut short, or an unfinished download?)",
        file.size(), header.data_size, promised);
  }
  if (promised < header.data_size) {
    fail(Errc::trailing_data, where, "has {} bytes, the tensors end at {}: {} bytes belong to nobody",
         file.size(), header.data_offset + promised, header.data_size - promised);
  }
  return header;
}

bool says_how_stored(std::string_view key) noexcept {
  return key == kPackedKey || key == kPackedVersionKey || key == kCryptoKeysKey || key == kEncryptionKey;
}

void require_none_of_storage(const std::optional<Metadata>& metadata, const std::string& where) {
  if (!metadata) return;
  for (const auto& [key, value] : *metadata)
    if (says_how_stored(key))
      fail(Errc::not_representable, where,
           "metadata {} says how the bytes of a file are stored, which only its writer may say", quoted(key));
}

void drop_keys_of_storage(Checkpoint& checkpoint) {
  if (!checkpoint.metadata) return;
  std::erase_if(*checkpoint.metadata, [&](const auto& entry) {
    if (!says_how_stored(entry.first)) return false;
    checkpoint.notes.push_back(
        fmt::format("metadata {} is left out: it speaks of a Safetensors file's bytes, which this is not",
                    quoted(entry.first)));
    return true;
  });
}

bool is_crypto_tensors(const Header& header) noexcept {
  return header.metadata &&
         std::any_of(header.metadata->begin(), header.metadata->end(), [](const auto& entry) {
           return entry.first == kCryptoKeysKey || entry.first == kEncryptionKey;
         });
}

void require_not_encrypted(const Header& header, const std::string& where) {
  if (is_crypto_tensors(header))
    fail(Errc::cannot_decrypt, where,
         "is encrypted with CryptoTensors: its bytes are no weights; ballast::open() reads it with its key "
         "(identities, --identity FILE)");
}

}  // namespace ballast::safetensors
