// SPDX-License-Identifier: Apache-2.0
// The central directory of a zip archive: found, read and checked whole (zip.h draws the format).
#include <algorithm>
#include <numeric>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "containers/expansion.h"
#include "containers/zip.h"
#include "containers/zip_names.h"
#include "containers/zip_records.h"

namespace ballast::containers {
namespace {

using namespace zip;

constexpr std::uint64_t kMostFolderWork = std::uint64_t{4} << 20U;  // bytes of names of folders
constexpr std::uint64_t kMostGrowth = 1032;  // of deflate: one bit of a match code for 258 bytes, twice

class DirectoryReader {
 public:
  explicit DirectoryReader(const ByteSource& source) : source_(source) {}

  ZipDirectory run() {
    read_entries(find_zip_end(source_, out_.anomalies));
    check_extents();
    check_growth();
    build_index();
    check_folders();
    note_anomalies();
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(Errc code, fmt::format_string<Args...> format, Args&&... args) const {
    fail(code, source_.where(), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] std::string where(std::string_view name) const {
    return source_.where() + ": entry " + quoted(name);
  }

  void read_entries(const ZipEnd& end);
  [[nodiscard]] ZipEntry read_entry(ByteReader& reader);
  void check_name(const ZipEntry& entry);
  void check_kind(const ZipEntry& entry, std::uint32_t attributes) const;
  void check_extra(const ZipEntry& entry, std::span<const std::byte> extra) const;
  void apply_zip64(ZipEntry& entry, std::span<const std::byte> extra) const;
  void check_extents();
  void check_growth() const;
  void build_index();
  void check_folders() const;
  void check_sorted_folders() const;
  void note_anomalies();

  const ByteSource& source_;
  ZipDirectory out_;
  std::string_view plain_folder_;  // with its slash, of names without anything odd
};

void DirectoryReader::read_entries(const ZipEnd& end) {
  out_.start = end.start;
  const auto size = static_cast<std::size_t>(end.size);
  out_.bytes = std::unique_ptr<char[]>(new char[size]);  // not initialised: it is all read
  const std::span<char> text(out_.bytes.get(), size);
  source_.read(end.start, std::as_writable_bytes(text));
  ByteReader reader(std::as_bytes(text), source_.where(), end.start);
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

ZipEntry DirectoryReader::read_entry(ByteReader& reader) {
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
  const auto attributes = load_le<std::uint32_t>(header + 38);

  check_name(entry);
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
  check_kind(entry, attributes);
  check_extra(entry, extra);
  return entry;
}

// A number in the folder of the last plain name is one, too.
void DirectoryReader::check_name(const ZipEntry& entry) {
  const std::string_view folder = plain_folder_;
  if (!folder.empty() && entry.name.size() > folder.size() && entry.name.starts_with(folder) &&
      all_digits(entry.name.substr(folder.size())))
    return;
  check_zip_name(entry.name, (entry.flags & kUtf8Flag) != 0, source_.where());
  plain_folder_ = is_plain_zip_name(entry.name) ? zip_folder_of(entry.name) : std::string_view();
}

// A file is a file to every reader: some go by the slash at the end, some by the attributes of DOS or Unix.
void DirectoryReader::check_kind(const ZipEntry& entry, std::uint32_t attributes) const {
  constexpr std::uint32_t kDosFolder = 0x10;
  constexpr std::uint32_t kUnixType = 0xF000;
  constexpr std::uint32_t kUnixFolder = 0x4000;
  constexpr std::uint32_t kUnixFile = 0x8000;
  const std::uint32_t type = attributes >> 16U & kUnixType;
  if (type != 0 && type != kUnixFolder && type != kUnixFile)
    fail(Errc::zip_ambiguous, where(entry.name), "is a link or a device (mode {:#o}), not a file",
         attributes >> 16U);
  const bool is_marked = type == kUnixFolder || (attributes & kDosFolder) != 0;
  if (entry.is_folder() ? type == kUnixFile : is_marked)
    fail(Errc::zip_ambiguous, where(entry.name), "is a folder by its {}, and a file by its {}",
         entry.is_folder() ? "name" : "attributes", entry.is_folder() ? "attributes" : "name");
  if (entry.is_folder() && (entry.size != 0 || entry.packed_size != 0))
    fail(Errc::bad_zip, where(entry.name), "is a folder with {} bytes in it", entry.packed_size);
}

// Fields end where the extra field ends, and none gives the entry another name.
void DirectoryReader::check_extra(const ZipEntry& entry, std::span<const std::byte> extra) const {
  constexpr std::size_t kUnicodeLead = 5;  // a version and the checksum of the other name
  if (extra.size() < 4) return;
  ByteReader fields(extra, where(entry.name));
  int wide = 0;
  while (fields.left() >= 4) {
    const auto id = fields.take_le<std::uint16_t>();
    const auto size = fields.take_le<std::uint16_t>();
    if (size > fields.left())
      fail(Errc::bad_zip, where(entry.name), "an extra field of {} bytes, {} are left", size, fields.left());
    const auto content = as_text(fields.take(size));
    if (id == kZip64Extra) ++wide;
    if (id == kUnicodePath && (size < kUnicodeLead || content.substr(kUnicodeLead) != entry.name))
      fail(Errc::name_mismatch, where(entry.name), "has another name in an extra field");
  }
  if (wide > 1)
    fail(Errc::zip_ambiguous, where(entry.name), "{} zip64 fields: readers differ in which one they take",
         wide);
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
// directory is looked at here; check_zip_records() does the rest.
void DirectoryReader::check_extents() {
  std::vector<ZipEntry>& entries = out_.entries;
  std::vector<std::uint32_t>& order = out_.by_place;
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
    if (!fits(entry.header, head, source_.size()) ||
        entry.packed_size > source_.size() - entry.header - head) {
      fail(Errc::offset_out_of_range, where(entry.name),
           "{} bytes behind a header at offset {} lie outside the {} bytes of the archive", entry.packed_size,
           entry.header, source_.size());
    }
    if (entry.header + head + entry.packed_size > limit) {
      fail(Errc::overlap, where(entry.name), "its bytes {} to {} reach into {} at {}", entry.header,
           entry.header + head + entry.packed_size, limit == out_.start ? "the directory" : "the next record",
           limit);
    }
    entry.limit = limit;
    limit = entry.header;
  }
  if (limit != 0 && source_.size() > 0) {
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
  out_.names.build(entries, [&](std::size_t i, std::size_t j) {
    fail(Errc::duplicate_entry, where(entries[j].name),
         "is there twice (the other is {}): readers differ in which one they take", quoted(entries[i].name));
  });
}

// A file "a" and a file "a/b", or a folder "a/": they cannot both be unpacked.
void DirectoryReader::check_folders() const {
  std::string_view last;
  std::uint64_t work = 0;
  for (const ZipEntry& entry : out_.entries) {
    std::string_view parent = entry.name.substr(0, entry.name.size() - 1);
    parent = entry.is_folder() ? parent : parent.substr(0, parent.rfind('/') + 1);
    if (!entry.is_folder() && !parent.empty()) parent.remove_suffix(1);
    if (parent == last) continue;
    last = parent;
    for (; !parent.empty();
         parent = parent.substr(0, parent.rfind('/') == std::string_view::npos ? 0 : parent.rfind('/'))) {
      work += parent.size();
      if (work > kMostFolderWork) return check_sorted_folders();
      if (out_.names.find(out_.entries, parent))
        fail(Errc::zip_ambiguous, where(entry.name), "lies below {}, which is a file", quoted(parent));
    }
  }
}

// The same for names of very many folders, whose parents together are too much text. With the slash before
// all other characters, what lies below a name comes right behind it.
void DirectoryReader::check_sorted_folders() const {
  const auto rank = [](char c) {
    if (c == '/') return -1;
    return static_cast<int>(static_cast<unsigned char>(to_lower(c)));
  };
  std::vector<std::string_view> names;
  for (const ZipEntry& entry : out_.entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [&](char x, char y) { return rank(x) < rank(y); });
  });
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    const std::string_view file = names[i];
    const std::string_view next = names[i + 1];
    if (next.size() > file.size() && next[file.size()] == '/' &&
        equal_any_case(next.substr(0, file.size()), file))
      fail(Errc::zip_ambiguous, where(next), "lies below {}, which is a file", quoted(file));
  }
}

void DirectoryReader::note_anomalies() {
  if (!out_.by_place.empty())
    out_.anomalies.emplace_back("the directory lists the records in another order than they lie in the file");
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

ZipDirectory read_zip_directory(const ByteSource& source) {
  return DirectoryReader(source).run();
}

}  // namespace ballast::containers
