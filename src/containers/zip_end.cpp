// SPDX-License-Identifier: Apache-2.0
// The end of a zip archive: the record that says where the directory lies, and its zip64 companions.
#include <algorithm>
#include <array>
#include <optional>

#include "base/bytes.h"
#include "base/checked.h"
#include "containers/zip.h"
#include "containers/zip_records.h"

namespace ballast::containers {
namespace {

using namespace zip;

class EndFinder {
 public:
  EndFinder(const ByteSource& source, std::vector<std::string>& anomalies)
      : source_(source), anomalies_(anomalies) {}

  [[nodiscard]] ZipEnd find();

 private:
  template <class... Args>
  [[noreturn]] void refuse(Errc code, fmt::format_string<Args...> format, Args&&... args) const {
    fail(code, source_.where(), format, std::forward<Args>(args)...);
  }

  void follow_zip64(ZipEnd& end, std::uint64_t plain_position) const;
  void check_place(const ZipEnd& end) const;

  const ByteSource& source_;
  std::vector<std::string>& anomalies_;
};

// The last end record, as PyTorch and most others find it. An earlier one whose comment reaches exactly to
// the end of the file would be taken by the rest, so the two must not both exist.
ZipEnd EndFinder::find() {
  const std::uint64_t window = std::min<std::uint64_t>(source_.size(), kEndSize + 0xFFFF);
  std::vector<std::byte> tail(static_cast<std::size_t>(window));
  const std::uint64_t tail_start = source_.size() - window;
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
           source_.size());
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
           comment, after, source_.size());
  }

  ZipEnd end;
  end.position = position;
  end.count = load_le<std::uint16_t>(record + 10);
  end.size = load_le<std::uint32_t>(record + 12);
  end.start = load_le<std::uint32_t>(record + 16);
  if (load_le<std::uint16_t>(record + 4) != 0 || load_le<std::uint16_t>(record + 6) != 0 ||
      load_le<std::uint16_t>(record + 8) != end.count) {
    refuse(Errc::bad_zip, "the end record at offset {} speaks of several disks", position);
  }
  follow_zip64(end, position);
  check_place(end);
  if (after > comment)
    anomalies_.push_back(fmt::format("{} bytes after the end of the archive", after - comment));
  if (comment > 0) anomalies_.push_back(fmt::format("an archive comment of {} bytes", comment));
  return end;
}

void EndFinder::follow_zip64(ZipEnd& end, std::uint64_t plain_position) const {
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
  if (length != kEnd64Size - 12) {  // Python looks for it right before the locator
    refuse(Errc::zip_ambiguous,
           "the zip64 end record at offset {} is longer than {} bytes: readers look for "
           "it in different places",
           position, kEnd64Size);
  }
  ZipEnd full;
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

void EndFinder::check_place(const ZipEnd& end) const {
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

}  // namespace

ZipEnd find_zip_end(const ByteSource& source, std::vector<std::string>& anomalies) {
  return EndFinder(source, anomalies).find();
}

}  // namespace ballast::containers
