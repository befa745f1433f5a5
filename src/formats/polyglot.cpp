// SPDX-License-Identifier: Apache-2.0
#include "formats/polyglot.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ballast/safetensors.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/magic.h"
#include "formats/format_table.h"
#include "formats/gzip.h"
#include "formats/pickle_walk.h"
#include "formats/zip_records.h"

namespace ballast {
namespace {

std::vector<std::byte> bytes_at(const ByteSource& source, std::uint64_t offset, std::uint64_t most) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(most, source.size() - offset)));
  source.read(offset, bytes);
  return bytes;
}

// An end record near the end, and a directory where it says, or right before it.
std::optional<std::uint64_t> zip_end(const ByteSource& source) {
  using namespace zip;
  const std::uint64_t window = std::min<std::uint64_t>(source.size(), kEndSize + 0x10000);
  const std::uint64_t start = source.size() - window;
  const auto tail = bytes_at(source, start, window);
  const auto is_directory = [&](std::uint64_t at) {
    if (!fits(at, kCentralSize, source.size())) return false;
    std::array<std::byte, 4> lead{};
    source.read(at, lead);
    const auto signature = load_le<std::uint32_t>(lead.data());
    return signature == kCentralSignature || signature == kEnd64Signature;
  };
  int tried = 0;
  for (std::size_t at = as_text(tail).rfind("PK\5\6"); at != std::string_view::npos && tried < 64; ++tried) {
    const std::uint64_t place = start + at;
    if (at + kEndSize <= tail.size()) {
      const std::uint64_t size = load_le<std::uint32_t>(&tail[at + 12]);
      const std::uint64_t offset = load_le<std::uint32_t>(&tail[at + 16]);
      if (is_directory(offset) || (size <= place && is_directory(place - size)) ||
          (place >= kLocatorSize + kEnd64Size && is_directory(place - kLocatorSize - kEnd64Size)))
        return place;
    }
    if (at == 0) break;
    at = as_text(tail).rfind("PK\5\6", at - 1);
  }
  return std::nullopt;
}

bool is_safetensors(const ByteSource& source, std::span<const std::byte> head) {
  if (head.size() < 10 || head[8] != std::byte{'{'}) return false;
  const auto length = load_le<std::uint64_t>(head.data());
  if (length < 2 || length > safetensors::kMaxHeaderBytes || !fits(8, length, source.size())) return false;
  const std::uint64_t spaces = std::min<std::uint64_t>(length, 64);
  const auto last = bytes_at(source, 8 + length - spaces, spaces);
  const auto text = as_text(last);
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  return end != std::string_view::npos && text[end] == '}';
}

// HDF5 may begin behind a block of the user's, of 512, 1024, 2048… bytes.
std::optional<std::uint64_t> hdf5_start(const ByteSource& source) {
  constexpr std::string_view kMagic = "\x89HDF\r\n\x1A\n";
  for (std::uint64_t at = 512; fits(at, kMagic.size(), source.size()); at *= 2) {
    if (as_text(bytes_at(source, at, kMagic.size())) == kMagic) return at;
  }
  return std::nullopt;
}

// Some readers of pickles unpack by themselves what looks packed.
void find_packed(const ByteSource& source, std::span<const std::byte> head, bool opened_as_gzip,
                 std::vector<OtherReading>& found) {
  if (opened_as_gzip) {
    try {
      if (const auto at = first_pickle_import(*memory_source(gunzip(source), source.name())))
        found.push_back({"pickle", *at, "an unpickler of what it unpacks to would import or call something"});
    } catch (const Error&) {
      return;  // then it is not opened either, which says why
    }
    return;
  }
  const bool may_be = as_text(head).starts_with("\x1F\x8B") || as_text(head).starts_with('x');
  if (may_be && is_packed(source)) found.push_back({"gzip", 0, "unpacks like a gzip or zlib stream"});
}

}  // namespace

std::vector<OtherReading> other_readings(const ByteSource& source) {
  const auto head = bytes_at(source, 0, kMagicBytes);
  const Format format = format_of(source);
  const bool begins_as_zip = as_text(head).starts_with("PK\3\4") || as_text(head).starts_with("PK\5\6");
  const bool zip = begins_as_zip && (format == formats::torch_zip || format == formats::npz);
  const bool tar = is_tar(head);
  const bool opened_as_tar = format == formats::torch_zip && !zip && tar;
  const bool opened_as_pickle = format == formats::torch_zip && !zip && !tar;

  std::vector<OtherReading> found;
  if (!opened_as_pickle && !zip) {
    if (const auto at = first_pickle_import(source))
      found.push_back({"pickle", *at, "an unpickler would import or call something"});
  }
  if (!zip && begins_as_zip) {
    found.push_back({"zip", 0, "begins like a zip archive, which is all that some readers look at"});
  } else if (!zip) {
    if (const auto at = zip_end(source))
      found.push_back({"zip", *at, "a zip archive ends there, which readers of zip look for first"});
  }
  if (tar && !opened_as_tar)
    found.push_back({"tar", 0, "the first 512 bytes are the header of a tar archive"});
  find_packed(source, head, format == formats::mpk_gz, found);
  if (format != formats::safetensors && is_safetensors(source, head))
    found.push_back({"safetensors", 0, "begins like a Safetensors file"});
  if (const auto at = hdf5_start(source)) found.push_back({"hdf5", *at, "an HDF5 file begins there"});
  return found;
}

}  // namespace ballast
