// SPDX-License-Identifier: Apache-2.0
// Zip archives, read. The central directory and the local header of every record are read when the archive is
// opened, and must say the same: a reader that begins at the end, as most do, and one that takes record after
// record from the beginning find the same names, in the same order, with the same content. An archive that
// two readers could read differently is refused; what is only unusual is told in anomalies().
//
//   1. records   local header "PK\3\4" (30 bytes), name, extra fields, data, data descriptor "PK\7\8" when
//   flag bit 3 is set
//   2. directory central header "PK\1\2" (46 bytes), name, extra fields (zip64 sizes), comment; one for each
//   record
//   3. end       zip64 end "PK\6\6" and its locator "PK\6\7" (both or none), end record "PK\5\6" (22 bytes),
//   comment
//
// Numbers are little-endian. PyTorch writes its records stored, with zeros for sizes and checksum in the
// local header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/detail/name_index.h"
#include "ballast/storage.h"
#include "tensor/source_storage.h"

namespace ballast::containers {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

/// One record as the central directory gives it. Offsets count from the archive's first byte.
struct ZipEntry {
  std::string_view name;      ///< as long as the archive, or a storage made by it, lives
  std::uint64_t header;       ///< of its local header
  std::uint64_t data;         ///< of its content
  std::uint64_t packed_size;  ///< in the file
  std::uint64_t size;         ///< of the content
  std::uint64_t
      limit;  ///< where the next record or the directory begins: header, data and descriptor end before it
  std::uint32_t crc;  ///< 0 with content: not computed
  std::uint16_t flags;
  ZipMethod method;

  [[nodiscard]] bool is_folder() const noexcept { return !name.empty() && name.back() == '/'; }

  [[nodiscard]] bool has_crc() const noexcept { return crc != 0 || size == 0; }
};

/// What the end records say.
struct ZipEnd {
  std::uint64_t position = 0;  ///< of the first of the end records: the directory ends here
  std::uint64_t count = 0;     ///< of entries
  std::uint64_t size = 0;      ///< of the directory
  std::uint64_t start = 0;
};

/// Adds to `anomalies` what is unusual about them.
[[nodiscard]] ZipEnd find_zip_end(const ByteSource& source, std::vector<std::string>& anomalies);

/// Which entry has a name, in whatever case. PyTorch's records are numbers in one folder ("archive/data/12"),
/// by the hundred thousand: those stand in a table, the others are hashed.
class ZipNameIndex {
 public:
  /// `again(i, j)` hears that j has the name of i.
  void build(std::span<const ZipEntry> entries, const std::function<void(std::size_t, std::size_t)>& again);
  [[nodiscard]] std::optional<std::size_t> find(std::span<const ZipEntry> entries,
                                                std::string_view name) const;

 private:
  /// Of a name in the folder of numbers, as large as the table.
  [[nodiscard]] std::optional<std::size_t> number_of(std::string_view name) const;

  std::string_view folder_;              // with its slash
  std::vector<std::uint32_t> numbered_;  // 1 + the entry's position; 0: none
  std::vector<std::uint32_t> others_;    // positions
  detail::NameIndex hashed_;             // of the others, by their names in lower case
};

/// The checked directory of an archive.
struct ZipDirectory {
  std::unique_ptr<char[]> bytes;        // the central directory; names are views of it
  std::vector<ZipEntry> entries;        // in the directory's order
  std::vector<std::uint32_t> by_place;  // entries by their place in the file; empty when that is their order
  ZipNameIndex names;
  std::vector<std::string> anomalies;
  std::uint64_t start = 0;  // of the directory
};

[[nodiscard]] ZipDirectory read_zip_directory(const ByteSource& source);

/// Holds every local header and data descriptor against the directory, and finds the places of the data. What
/// lies between the records, and belongs to none, is refused, or told when it is only zeros.
void check_zip_records(const ByteSource& source, ZipDirectory& directory);

class ZipArchive {
 public:
  static ZipArchive open(std::shared_ptr<const ByteSource> source);

  [[nodiscard]] std::span<const ZipEntry> entries() const noexcept;
  /// Null when there is none. Names differ by more than case (a directory where they do not is refused), so
  /// that with `any_case`, as PyTorch looks records up, there is one answer too.
  [[nodiscard]] const ZipEntry* find(std::string_view name, bool any_case = false) const noexcept;
  /// What is unusual and yet readable: sentences for people.
  [[nodiscard]] const std::vector<std::string>& anomalies() const noexcept;
  /// The archive's name for messages, and with an entry: `net.pt: entry "archive/data.pkl"`.
  [[nodiscard]] const std::string& where() const noexcept;
  [[nodiscard]] std::string where(const ZipEntry& entry) const;

  // All of these take entries of this archive, and may be called from several threads.

  /// The content. Nothing of it is read before the storage is. A stored record is a view of the file
  /// (or of a copy of its range: Access::read) whose source_span() is known; a deflated one is inflated at
  /// the first data().
  [[nodiscard]] std::shared_ptr<const Storage> storage(const ZipEntry& entry, Access access) const;
  /// The content as bytes of their own. Errc::expansion_limit when there are more than `most`.
  [[nodiscard]] std::vector<std::byte> read(const ZipEntry& entry, std::uint64_t most) const;
  /// The first bytes of the content, at most `most`; a deflated entry is inflated no further.
  [[nodiscard]] std::vector<std::byte> head(const ZipEntry& entry, std::size_t most) const;
  /// The place of the data. The headers were compared when the archive was opened.
  [[nodiscard]] std::uint64_t check_header(const ZipEntry& entry) const;
  /// Reads the content and compares its checksum: Errc::bad_crc. False when the archive holds none for it.
  bool check_crc(const ZipEntry& entry) const;

  struct State;

 private:
  explicit ZipArchive(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace ballast::containers
