// SPDX-License-Identifier: Apache-2.0
// The records of a zip archive as a reader finds them that begins at the first byte: local header, data,
// descriptor, the next local header. They must be those of the directory, with nothing between them.
#include <libdeflate.h>

#include <algorithm>
#include <array>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "containers/zip.h"
#include "containers/zip_records.h"

namespace ballast::containers {
namespace {

using namespace zip;

constexpr std::uint64_t kNear = 512;  // header, name and PyTorch's padding, in all but odd archives
constexpr std::uint64_t kWindow = std::uint64_t{1} << 18U;
constexpr std::uint64_t kSmallRecord = 4096;  // records that lie close are read together
constexpr std::uint64_t kMostPadding = std::uint64_t{1} << 16U;
constexpr std::uint64_t kMostInflated = std::uint64_t{1} << 20U;

class RecordChecker {
 public:
  RecordChecker(const ByteSource& source, ZipDirectory& directory) : source_(source), directory_(directory) {}

  void run() {
    std::vector<ZipEntry>& entries = directory_.entries;
    for (std::size_t i = 0; i < entries.size(); ++i)
      check(entries[directory_.by_place.empty() ? i : directory_.by_place[i]]);
    if (padding_ > 0) directory_.anomalies.push_back(fmt::format("{} zero bytes between records", padding_));
    if (endless_ > 0) {
      directory_.anomalies.push_back(
          fmt::format("{} deflated entries whose local headers do not say where they end", endless_));
    }
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(Errc code, const ZipEntry& entry, fmt::format_string<Args...> format,
                           Args&&... args) const {
    fail(code, source_.where() + ": entry " + quoted(entry.name), format, std::forward<Args>(args)...);
  }

  /// The bytes from `offset` on, at least `length` of them; valid until the next call.
  std::span<const std::byte> bytes_at(std::uint64_t offset, std::uint64_t length, std::uint64_t ahead) {
    if (offset < window_at_ || !fits(offset - window_at_, length, window_.size())) {
      const std::uint64_t most = source_.size() - offset;
      window_.resize(static_cast<std::size_t>(std::min(most, std::max(length, ahead))));
      window_at_ = offset;
      source_.read(offset, window_);
    }
    return std::span<const std::byte>(window_).subspan(static_cast<std::size_t>(offset - window_at_));
  }

  void check(ZipEntry& entry) {
    const std::uint64_t room = entry.limit - entry.header;  // a header and a name, at least
    const std::uint64_t ahead = room <= kSmallRecord ? kWindow : kNear;
    auto bytes = bytes_at(entry.header, kLocalSize, ahead);
    if (load_le<std::uint32_t>(bytes.data()) != kLocalSignature)
      refuse(Errc::bad_zip, entry, "no local header at offset {}", entry.header);
    const std::uint64_t name_size = load_le<std::uint16_t>(bytes.data() + 26);
    const std::uint64_t length = kLocalSize + name_size + load_le<std::uint16_t>(bytes.data() + 28);
    bytes = bytes_at(entry.header, std::min(room, length), ahead);
    // A name of another length may be why the record does not fit: it is the better message.
    const auto name = as_text(bytes.first(static_cast<std::size_t>(std::min(room, length))))
                          .substr(kLocalSize, static_cast<std::size_t>(name_size));
    if (name != entry.name)
      refuse(Errc::name_mismatch, entry, "is called {} in its local header", quoted(name));
    if (length > room || entry.packed_size > room - length) {
      refuse(Errc::overlap, entry, "{} bytes of header and {} of data at offset {} reach beyond {}", length,
             entry.packed_size, entry.header, entry.limit);
    }
    check_fields(entry, bytes.data());
    check_sizes(entry, bytes.data(),
                bytes.subspan(kLocalSize + name.size(), length - kLocalSize - name.size()));
    entry.data = entry.header + length;
    const bool streamed = (entry.flags & kDescriptorFlag) != 0;
    std::uint64_t end = entry.data + entry.packed_size;
    if (streamed && entry.method == ZipMethod::deflated) check_deflated_end(entry);
    if (streamed) end += descriptor_size(entry, end);
    if (end != entry.limit) check_gap(entry, end);
  }

  void check_fields(const ZipEntry& entry, const std::byte* header) const {
    const unsigned flags = load_le<std::uint16_t>(header + 6);
    if ((flags & ~kKnownFlags) != 0) {
      refuse(Errc::encrypted_flag, entry,
             "flags {:#06x} in its local header: encrypted, or marked so that scanners skip it", flags);
    }
    if ((flags & ~kDeflateHints) != (entry.flags & ~kDeflateHints)) {
      refuse(Errc::zip_ambiguous, entry, "flags {:#06x} in its local header, {:#06x} in the directory", flags,
             entry.flags);
    }
    const auto method = load_le<std::uint16_t>(header + 8);
    if (ZipMethod{method} != entry.method) {
      refuse(Errc::zip_ambiguous, entry, "method {} in its local header, {} in the directory", method,
             static_cast<unsigned>(entry.method));
    }
    check_number(entry, Errc::bad_crc, load_le<std::uint32_t>(header + 14), entry.crc, "checksum");
  }

  // With a descriptor behind the data the local header may say zero: PyTorch and all streaming writers do.
  void check_number(const ZipEntry& entry, Errc code, std::uint64_t local, std::uint64_t central,
                    std::string_view what) const {
    if (local == central || (local == 0 && (entry.flags & kDescriptorFlag) != 0)) return;
    refuse(code, entry, "{} {} in its local header, {} in the directory", what, local, central);
  }

  // Local zip64 fields matter only where a size defers to them: PyTorch's hold other things than the standard
  // says.
  void check_sizes(const ZipEntry& entry, const std::byte* header, std::span<const std::byte> extra) const {
    std::uint64_t packed = load_le<std::uint32_t>(header + 18);
    std::uint64_t plain = load_le<std::uint32_t>(header + 22);
    const bool defers = packed == kMarker32 || plain == kMarker32;
    ByteReader fields(extra, defers ? source_.where() : std::string());
    while (defers && fields.left() >= 4) {
      const auto id = fields.take_le<std::uint16_t>();
      const auto size = fields.take_le<std::uint16_t>();
      if (size > fields.left()) break;
      ByteReader numbers(fields.take(size), fields.where());
      if (id != kZip64Extra) continue;
      if (plain == kMarker32 && numbers.left() >= 8) plain = numbers.take_le<std::uint64_t>();
      if (packed == kMarker32 && numbers.left() >= 8) packed = numbers.take_le<std::uint64_t>();
      break;
    }
    check_number(entry, Errc::size_mismatch, packed, entry.packed_size, "packed size");
    check_number(entry, Errc::size_mismatch, plain, entry.size, "size");
  }

  // crc, packed size and size, in 32 or 64 bits, behind an optional signature. Of several that fit (zeros do
  // in both widths), the one that reaches to the next record.
  std::uint64_t descriptor_size(const ZipEntry& entry, std::uint64_t position) {
    const std::uint64_t room = entry.limit - position;
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(room, kDescriptor64Size));
    const auto bytes = bytes_at(position, length, length).first(length);
    std::uint64_t found = 0;
    for (const std::size_t lead : {std::size_t{4}, std::size_t{0}}) {
      if (lead != 0 && (length < 4 || load_le<std::uint32_t>(bytes.data()) != kDescriptorSignature)) continue;
      for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
        const std::size_t whole = lead + 4 + 2 * width;
        if (whole > length || load_le<std::uint32_t>(bytes.data() + lead) != entry.crc) continue;
        const auto number = [&](std::size_t at) {
          return width == 4 ? load_le<std::uint32_t>(bytes.data() + at)
                            : load_le<std::uint64_t>(bytes.data() + at);
        };
        if (number(lead + 4) != entry.packed_size || number(lead + 4 + width) != entry.size) continue;
        if (whole == room || found == 0) found = whole;
      }
    }
    if (found == 0) refuse_descriptor(entry, bytes, position);
    return found;
  }

  [[noreturn]] void refuse_descriptor(const ZipEntry& entry, std::span<const std::byte> bytes,
                                      std::uint64_t position) const {
    if (bytes.size() < kDescriptorSize || load_le<std::uint32_t>(bytes.data()) != kDescriptorSignature)
      refuse(Errc::bad_zip, entry, "no data descriptor behind its data, at offset {}", position);
    if (load_le<std::uint32_t>(bytes.data() + 4) == entry.crc) {
      refuse(Errc::size_mismatch, entry, "the descriptor behind its data says {} bytes, the directory {}",
             load_le<std::uint32_t>(bytes.data() + 12), entry.size);
    }
    refuse(Errc::bad_crc, entry, "checksum {:#010x} behind its data, {:#010x} in the directory",
           load_le<std::uint32_t>(bytes.data() + 4), entry.crc);
  }

  // A reader that streams learns from the deflated data itself where it ends, and goes on there.
  void check_deflated_end(const ZipEntry& entry) {
    if (entry.size > kMostInflated || entry.packed_size > kMostInflated) {
      ++endless_;
      return;
    }
    std::vector<std::byte> packed(static_cast<std::size_t>(entry.packed_size));
    source_.read(entry.data, packed);
    std::vector<std::byte> plain(static_cast<std::size_t>(entry.size) + 1);
    const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
        libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
    if (!inflater) throw std::bad_alloc();
    std::size_t used = 0;
    std::size_t made = 0;
    const auto verdict = libdeflate_deflate_decompress_ex(inflater.get(), packed.data(), packed.size(),
                                                          plain.data(), plain.size(), &used, &made);
    if (verdict == LIBDEFLATE_BAD_DATA)
      refuse(Errc::bad_zip, entry, "its {} deflated bytes are damaged", packed.size());
    if (verdict != LIBDEFLATE_SUCCESS || made != entry.size) {
      refuse(Errc::size_mismatch, entry, "its {} deflated bytes do not unpack to the {} it promises",
             packed.size(), entry.size);
    }
    if (used != packed.size())
      refuse(Errc::bad_zip, entry, "its deflated data ends after {} of {} bytes", used, packed.size());
  }

  // Whoever streams would find there what the directory does not list.
  void check_gap(const ZipEntry& entry, std::uint64_t end) {
    const std::uint64_t gap = entry.limit - end;
    if (gap > kMostPadding)
      refuse(Errc::zip_ambiguous, entry, "{} bytes lie behind it, at offset {}, and belong to no entry", gap,
             end);
    const auto bytes = bytes_at(end, gap, gap).first(static_cast<std::size_t>(gap));
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; })) {
      refuse(Errc::zip_ambiguous, entry, "{} bytes lie behind it, at offset {}, and belong to no entry{}",
             gap, end,
             gap >= 4 && load_le<std::uint32_t>(bytes.data()) == kLocalSignature
                 ? " (a record that the directory does not list)"
                 : "");
    }
    padding_ += gap;
  }

  const ByteSource& source_;
  ZipDirectory& directory_;
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
  std::uint64_t padding_ = 0;
  std::uint64_t endless_ = 0;  // deflated, too large to look for their end
};

}  // namespace

void check_zip_records(const ByteSource& source, ZipDirectory& directory) {
  RecordChecker(source, directory).run();
}

}  // namespace ballast::containers
