// SPDX-License-Identifier: Apache-2.0
// The central directory of a zip archive: found, read and checked whole (zip.h draws the format).
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>

#include "ballast/display.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "formats/expansion.h"
#include "formats/zip.h"
#include "formats/zip_names.h"
#include "formats/zip_records.h"

namespace ballast {
namespace {

using namespace zip;

constexpr std::uint64_t kMostGrowth = 1032;  // of deflate: one bit of a match code for 258 bytes, twice

struct EndRecord {
  std::uint64_t position = 0;  // of the first of the end records: the directory ends here
  std::uint64_t count = 0;
  std::uint64_t size = 0;
  std::uint64_t start = 0;
};

class DirectoryReader {
 public:
  explicit DirectoryReader(const ZipSource& source) : source_(source) {}

  ZipDirectory run() {
    const EndRecord end = find_end();
    check_place(end);
    read_entries(end);
    check_extents();
    check_growth();
    build_index();
    note_anomalies();
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(Errc code, fmt::format_string<Args...> format, Args&&... args) const {
    fail(code, source_.where, format, std::forward<Args>(args)...);
  }

  [[nodiscard]] std::string where(std::string_view name) const {
    return source_.where + ": entry " + quoted(name);
  }

  [[nodiscard]] EndRecord find_end();
  void follow_zip64(EndRecord& end, std::uint64_t plain_position) const;
  void check_place(const EndRecord& end) const;
  void read_entries(const EndRecord& end);
  [[nodiscard]] ZipEntry read_entry(ByteReader& reader) const;
  void apply_zip64(ZipEntry& entry, std::span<const std::byte> extra) const;
  void check_extents();
  void check_growth() const;
  void build_index();
  void note_anomalies();

  const ZipSource& source_;
  ZipDirectory out_;
};

// The last end record, as PyTorch and most others find it. An earlier one whose comment reaches exactly to
// the end of the file would be taken by the rest, so the two must not both exist.
EndRecord DirectoryReader::find_end() {
  const std::uint64_t window = std::min<std::uint64_t>(source_.size, kEndSize + 0xFFFF);
  std::vector<std::byte> tail(static_cast<std::size_t>(window));
  const std::uint64_t tail_start = source_.size - window;
  source_.read(tail_start, tail);
  std::optional<std::size_t> last;
  std::optional<std::size_t> exact;
  for (std::size_t at = window >= kEndSize ? static_cast<std::size_t>(window - kEndSize) + 1 : 0; at-- > 0;) {
    if (load_le<std::uint32_t>(&tail[at]) != kEndSignature) continue;
    if (!last) last = at;
    if (at + kEndSize + load_le<std::uint16_t>(&tail[at + 20]) == window) {
      exact = at;
      break;
    }
  }
  if (!last) {
    refuse(Errc::truncated, "no end of a zip archive in the last {} of {} bytes (cut download?)", window,
           source_.size);
  }
  if (exact && *exact != *last) {
    refuse(Errc::zip_ambiguous,
           "two end records, at offsets {} and {}: readers differ in which one they take",
           tail_start + *exact, tail_start + *last);
  }
  const std::byte* record = &tail[*last];
  const std::uint64_t position = tail_start + *last;
  const std::uint64_t comment = load_le<std::uint16_t>(record + 20);
  const std::uint64_t after = window - *last - kEndSize;
  if (comment > after) {
    refuse(Errc::truncated,
           "the end record promises a comment of {} bytes, {} are left of the file's {} (cut download?)",
           comment, after, source_.size);
  }

  EndRecord end;
  end.position = position;
  end.count = load_le<std::uint16_t>(record + 10);
  end.size = load_le<std::uint32_t>(record + 12);
  end.start = load_le<std::uint32_t>(record + 16);
  if (load_le<std::uint16_t>(record + 4) != 0 || load_le<std::uint16_t>(record + 6) != 0 ||
      load_le<std::uint16_t>(record + 8) != end.count) {
    refuse(Errc::bad_zip, "the end record at offset {} speaks of several disks", position);
  }
  follow_zip64(end, position);
  if (after > comment)
    out_.anomalies.push_back(fmt::format("{} bytes after the end of the archive", after - comment));
  if (comment > 0) out_.anomalies.push_back(fmt::format("an archive comment of {} bytes", comment));
  return end;
}

void DirectoryReader::follow_zip64(EndRecord& end, std::uint64_t plain_position) const {
  std::array<std::byte, kLocatorSize> locator{};
  if (plain_position >= kLocatorSize) source_.read(plain_position - kLocatorSize, locator);
  if (load_le<std::uint32_t>(locator.data()) != kLocatorSignature) {
    if (end.size == kMarker32 || end.start == kMarker32) {
      refuse(Errc::bad_zip, "the end record at offset {} defers to zip64 records that are not there",
             plain_position);
    }
    return;
  }
  const std::uint64_t locator_position = plain_position - kLocatorSize;
  const auto position = load_le<std::uint64_t>(locator.data() + 8);
  if (!fits(position, kEnd64Size, locator_position)) {
    refuse(Errc::offset_out_of_range, "the zip64 locator points to offset {}, it lies itself at {}", position,
           locator_position);
  }
  std::array<std::byte, kEnd64Size> record{};
  source_.read(position, record);
  if (load_le<std::uint32_t>(record.data()) != kEnd64Signature) {
    refuse(Errc::bad_zip, "no zip64 end record at offset {}, where the locator points", position);
  }
  const auto length = load_le<std::uint64_t>(record.data() + 4);
  if (length != locator_position - position - 12) {
    refuse(Errc::bad_zip, "the zip64 end record at offset {} says {} bytes, {} lie before its locator",
           position, length, locator_position - position - 12);
  }
  EndRecord full;
  full.position = position;
  full.count = load_le<std::uint64_t>(record.data() + 32);
  full.size = load_le<std::uint64_t>(record.data() + 40);
  full.start = load_le<std::uint64_t>(record.data() + 48);
  if (load_le<std::uint32_t>(record.data() + 16) != 0 || load_le<std::uint32_t>(record.data() + 20) != 0 ||
      load_le<std::uint64_t>(record.data() + 24) != full.count ||
      load_le<std::uint32_t>(locator.data() + 4) != 0 || load_le<std::uint32_t>(locator.data() + 16) > 1) {
    refuse(Errc::bad_zip, "the zip64 end record at offset {} speaks of several disks", position);
  }
  const auto agree = [&](std::uint64_t plain, std::uint64_t marker, std::uint64_t value, const char* what) {
    if (plain == marker || plain == value) return;
    refuse(Errc::zip_ambiguous, "the end record says {} {}, the zip64 end record {}", plain, what, value);
  };
  agree(end.count, kMarker16, full.count, "entries");
  agree(end.size, kMarker32, full.size, "bytes of directory");
  agree(end.start, kMarker32, full.start, "as the directory's offset");
  end = full;
}

void DirectoryReader::check_place(const EndRecord& end) const {
  if (!fits(end.start, end.size, end.position)) {
    refuse(Errc::offset_out_of_range,
           "the directory of {} bytes at offset {} does not end before the end record at {}", end.size,
           end.start, end.position);
  }
  if (end.count > end.size / kCentralSize || end.count > 0xFFFFFFFE) {
    refuse(Errc::bad_zip, "{} entries cannot lie in a directory of {} bytes", end.count, end.size);
  }
  const std::uint64_t shift = end.position - end.size - end.start;
  if (shift == 0) return;
  if (end.size == 0)
    refuse(Errc::zip_ambiguous, "the end record of an empty archive, behind {} bytes of something else",
           shift);
  std::array<std::byte, 4> lead{};
  source_.read(shift, lead);  // shift + 4 <= position: an end record follows
  if (load_le<std::uint32_t>(lead.data()) == kLocalSignature) {
    refuse(Errc::zip_ambiguous,
           "{} bytes lie before the archive: some readers shift all offsets by that, others do not", shift);
  }
  refuse(Errc::bad_zip, "the directory ends at offset {}, the end record begins at {}", end.start + end.size,
         end.position);
}

void DirectoryReader::read_entries(const EndRecord& end) {
  out_.start = end.start;
  const auto size = static_cast<std::size_t>(end.size);
  out_.bytes = std::unique_ptr<char[]>(new char[size]);  // not initialised: it is all read
  const std::span<char> text(out_.bytes.get(), size);
  source_.read(end.start, std::as_writable_bytes(text));
  ByteReader reader(std::as_bytes(text), source_.where, end.start);
  out_.entries.reserve(static_cast<std::size_t>(end.count));
  for (std::uint64_t i = 0; i < end.count; ++i) {
    if (reader.left() < kCentralSize) {
      refuse(Errc::bad_zip, "{} entries promised, the directory ends after {}", end.count, i);
    }
    out_.entries.push_back(read_entry(reader));
  }
  if (!reader.at_end()) {
    refuse(Errc::bad_zip, "{} bytes of the directory lie behind its {} entries (a wrong count?)",
           reader.left(), end.count);
  }
}

ZipEntry DirectoryReader::read_entry(ByteReader& reader) const {
  const std::uint64_t position = reader.file_offset();
  const std::byte* header = reader.take(kCentralSize).data();
  if (load_le<std::uint32_t>(header) != kCentralSignature) {
    refuse(Errc::bad_zip, "no directory entry at offset {}", position);
  }
  const std::uint64_t name_size = load_le<std::uint16_t>(header + 28);
  const std::uint64_t extra_size = load_le<std::uint16_t>(header + 30);
  const std::uint64_t comment_size = load_le<std::uint16_t>(header + 32);
  if (name_size + extra_size + comment_size > reader.left()) {
    refuse(Errc::bad_zip,
           "the directory entry at offset {} needs {} bytes more, {} are left of the directory", position,
           name_size + extra_size + comment_size, reader.left());
  }
  ZipEntry entry{};
  entry.name = reader.take_text(name_size);
  entry.flags = load_le<std::uint16_t>(header + 8);
  const auto method = load_le<std::uint16_t>(header + 10);
  entry.method = ZipMethod{method};
  entry.crc = load_le<std::uint32_t>(header + 16);
  entry.packed_size = load_le<std::uint32_t>(header + 20);
  entry.size = load_le<std::uint32_t>(header + 24);
  entry.header = load_le<std::uint32_t>(header + 42);
  const std::span<const std::byte> extra = reader.take(extra_size);
  static_cast<void>(reader.take(comment_size));

  check_zip_name(entry.name, (entry.flags & kUtf8Flag) != 0, source_.where);
  if ((entry.flags & ~kKnownFlags) != 0) {
    fail(Errc::encrypted_flag, where(entry.name),
         "flags {:#06x}: encrypted, or marked so that scanners skip it", entry.flags);
  }
  if (entry.method != ZipMethod::stored && entry.method != ZipMethod::deflated) {
    fail(Errc::unsupported_method, where(entry.name),
         "compression method {}; stored (0) and deflated (8) are read", method);
  }
  const auto disk = load_le<std::uint16_t>(header + 34);
  if (disk != 0 && disk != kMarker16) fail(Errc::bad_zip, where(entry.name), "lies on disk {}", disk);
  if (entry.size == kMarker32 || entry.packed_size == kMarker32 || entry.header == kMarker32)
    apply_zip64(entry, extra);
  return entry;
}

void DirectoryReader::apply_zip64(ZipEntry& entry, std::span<const std::byte> extra) const {
  ByteReader fields(extra, where(entry.name));
  while (fields.left() >= 4) {
    const auto id = fields.take_le<std::uint16_t>();
    const auto size = fields.take_le<std::uint16_t>();
    if (size > fields.left()) break;
    ByteReader numbers(fields.take(size), fields.where());
    if (id != kZip64Extra) continue;
    for (std::uint64_t* number : {&entry.size, &entry.packed_size, &entry.header}) {
      if (*number != kMarker32) continue;
      if (numbers.left() < 8)
        fail(Errc::bad_zip, where(entry.name), "its zip64 field of {} bytes is too short", size);
      *number = numbers.take_le<std::uint64_t>();
    }
    return;
  }
  fail(Errc::bad_zip, where(entry.name), "its sizes defer to a zip64 field that is not there");
}

// Records lie in their own bytes: each ends before the next begins and before the directory. Only the central
// directory is looked at here; check_header() does the rest when a local header is first seen.
void DirectoryReader::check_extents() {
  std::vector<ZipEntry>& entries = out_.entries;
  std::vector<std::uint32_t> order;  // empty: as they are, which is the rule
  if (!std::is_sorted(entries.begin(), entries.end(),
                      [](const ZipEntry& a, const ZipEntry& b) { return a.header < b.header; })) {
    order.resize(entries.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return entries[a].header < entries[b].header; });
  }

  std::uint64_t limit = out_.start;
  for (std::size_t i = entries.size(); i-- > 0;) {
    ZipEntry& entry = entries[order.empty() ? i : order[i]];
    const std::uint64_t head = kLocalSize + entry.name.size();
    if (entry.method == ZipMethod::stored && entry.size != entry.packed_size) {
      fail(Errc::size_mismatch, where(entry.name), "stored, yet {} bytes packed and {} unpacked",
           entry.packed_size, entry.size);
    }
    if (!fits(entry.header, head, source_.size) || entry.packed_size > source_.size - entry.header - head) {
      fail(Errc::offset_out_of_range, where(entry.name),
           "{} bytes behind a header at offset {} lie outside the {} bytes of the archive", entry.packed_size,
           entry.header, source_.size);
    }
    if (entry.header + head + entry.packed_size > limit) {
      fail(Errc::overlap, where(entry.name), "its bytes {} to {} reach into {} at {}", entry.header,
           entry.header + head + entry.packed_size, limit == out_.start ? "the directory" : "the next record",
           limit);
    }
    entry.limit = limit;
    limit = entry.header;
  }
  if (limit != 0 && source_.size > 0) {
    refuse(Errc::zip_ambiguous, "{} bytes lie before the first record (an archive before the archive?)",
           limit);
  }
}

void DirectoryReader::check_growth() const {
  std::uint64_t packed = 0;
  std::uint64_t plain = 0;
  for (const ZipEntry& entry : out_.entries) {
    if (entry.method != ZipMethod::deflated) continue;
    if (entry.size / kMostGrowth > entry.packed_size) {  // packed sizes add up to less than the file
      fail(Errc::size_mismatch, where(entry.name), "{} bytes cannot come out of {} deflated ones", entry.size,
           entry.packed_size);
    }
    packed += entry.packed_size;
    plain += entry.size;
  }
  if (plain > expansion_limit(packed)) {
    refuse(Errc::expansion_limit, "{} deflated bytes unpack to {} (a zip bomb?)", packed, plain);
  }
}

void DirectoryReader::build_index() {
  const std::vector<ZipEntry>& entries = out_.entries;
  std::string folded;
  out_.index.put_all(
      entries.size(),
      [&](std::size_t i) {
        fold_case(entries[i].name, folded);
        return hash_name(folded);
      },
      [&](std::size_t i, std::size_t j) { return equal_any_case(entries[i].name, entries[j].name); },
      [&](std::size_t i, std::size_t j) {
        fail(Errc::duplicate_entry, where(entries[j].name),
             "is there twice (the other is {}): readers differ in which one they take",
             quoted(entries[i].name));
      });
}

void DirectoryReader::note_anomalies() {
  std::uint64_t deflated = 0;
  std::uint64_t unchecked = 0;
  for (const ZipEntry& entry : out_.entries) {
    if (entry.method == ZipMethod::deflated) ++deflated;
    if (!entry.has_crc()) ++unchecked;
  }
  if (deflated > 0)
    out_.anomalies.push_back(fmt::format("{} of {} entries are deflated", deflated, out_.entries.size()));
  if (unchecked > 0) out_.anomalies.push_back(fmt::format("{} entries carry no checksum", unchecked));
}

}  // namespace

ZipDirectory read_zip_directory(const ZipSource& source) {
  return DirectoryReader(source).run();
}

}  // namespace ballast
