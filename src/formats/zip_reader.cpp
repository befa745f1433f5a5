// SPDX-License-Identifier: Apache-2.0
// The records of a zip archive: their local headers held against the directory, their content stored or
// inflated.
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "ballast/display.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/sizes.h"
#include "formats/gzip.h"
#include "formats/zip.h"
#include "formats/zip_names.h"
#include "formats/zip_records.h"
#include "tensor/forwarding.h"

namespace ballast {

using namespace zip;

struct ZipArchive::State {
  ZipSource source;
  ZipDirectory directory;

  [[nodiscard]] std::string where(const ZipEntry& entry) const {
    return source.where + ": entry " + quoted(entry.name);
  }

  /// The record's packed bytes: a range of the file or storage.
  [[nodiscard]] std::shared_ptr<const Storage> packed(const ZipEntry& entry, FileAccess access) const;
  [[nodiscard]] std::uint64_t data_offset(const ZipEntry& entry) const;
  void inflate(const ZipEntry& entry, const Storage& packed, std::span<std::byte> out) const;
};

namespace {

void check_flags(const ZipArchive::State& state, const ZipEntry& entry, unsigned local) {
  if ((local & ~kKnownFlags) != 0) {
    fail(Errc::encrypted_flag, state.where(entry),
         "flags {:#06x} in its local header: encrypted, or marked so that scanners skip it", local);
  }
  if ((local & ~kDeflateHints) != (entry.flags & ~kDeflateHints)) {
    fail(Errc::zip_ambiguous, state.where(entry),
         "flags {:#06x} in its local header, {:#06x} in the directory", local, entry.flags);
  }
}

// With a descriptor behind the data the local header may say zero: PyTorch and all streaming writers do.
void check_number(const ZipArchive::State& state, const ZipEntry& entry, Errc code, std::uint64_t local,
                  std::uint64_t central, std::string_view what) {
  if (local == central || (local == 0 && (entry.flags & kDescriptorFlag) != 0)) return;
  fail(code, state.where(entry), "{} {} in its local header, {} in the directory", what, local, central);
}

// Local zip64 fields matter only where a size defers to them: PyTorch's hold other things than the standard
// says.
void check_sizes(const ZipArchive::State& state, const ZipEntry& entry, const std::byte* header,
                 std::span<const std::byte> extra) {
  std::uint64_t packed = load_le<std::uint32_t>(header + 18);
  std::uint64_t plain = load_le<std::uint32_t>(header + 22);
  ByteReader fields(extra, state.where(entry));
  while ((packed == kMarker32 || plain == kMarker32) && fields.left() >= 4) {
    const auto id = fields.take_le<std::uint16_t>();
    const auto size = fields.take_le<std::uint16_t>();
    if (size > fields.left()) break;
    ByteReader numbers(fields.take(size), fields.where());
    if (id != kZip64Extra) continue;
    if (plain == kMarker32 && numbers.left() >= 8) plain = numbers.take_le<std::uint64_t>();
    if (packed == kMarker32 && numbers.left() >= 8) packed = numbers.take_le<std::uint64_t>();
    break;
  }
  check_number(state, entry, Errc::size_mismatch, packed, entry.packed_size, "packed size");
  check_number(state, entry, Errc::size_mismatch, plain, entry.size, "size");
}

// crc, packed size and size, in 32 or 64 bits, behind an optional signature.
void check_descriptor(const ZipArchive::State& state, const ZipEntry& entry, std::uint64_t position) {
  std::array<std::byte, kDescriptor64Size> bytes{};
  const std::uint64_t room = entry.limit - position;
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size()));
  state.source.read(position, std::span(bytes).first(length));
  const bool is_signed =
      length >= kDescriptorSize && load_le<std::uint32_t>(bytes.data()) == kDescriptorSignature;
  const std::byte* fields = bytes.data() + (is_signed ? 4 : 0);
  const std::size_t left = length - (is_signed ? 4 : 0);
  const bool narrow = left >= 12 && load_le<std::uint32_t>(fields + 4) == entry.packed_size &&
                      load_le<std::uint32_t>(fields + 8) == entry.size;
  const bool wide = left >= 20 && load_le<std::uint64_t>(fields + 4) == entry.packed_size &&
                    load_le<std::uint64_t>(fields + 12) == entry.size;
  const bool same_crc = left >= 4 && load_le<std::uint32_t>(fields) == entry.crc;
  if (same_crc && (narrow || wide)) return;
  if (!is_signed)
    fail(Errc::bad_zip, state.where(entry), "no data descriptor behind its data, at offset {}", position);
  if (!narrow && !wide) {
    fail(Errc::size_mismatch, state.where(entry),
         "the descriptor behind its data says {} bytes, the directory {}", load_le<std::uint32_t>(fields + 8),
         entry.size);
  }
  fail(Errc::bad_crc, state.where(entry), "checksum {:#010x} behind its data, {:#010x} in the directory",
       load_le<std::uint32_t>(fields), entry.crc);
}

void check_local_header(const ZipArchive::State& state, const ZipEntry& entry,
                        std::span<const std::byte> bytes) {
  const std::byte* header = bytes.data();
  const auto name = as_text(bytes.subspan(kLocalSize, load_le<std::uint16_t>(header + 26)));
  if (name != entry.name) {
    fail(Errc::name_mismatch, state.where(entry), "is called {} in its local header", quoted(name));
  }
  check_flags(state, entry, load_le<std::uint16_t>(header + 6));
  if (ZipMethod{load_le<std::uint16_t>(header + 8)} != entry.method) {
    fail(Errc::zip_ambiguous, state.where(entry), "method {} in its local header, {} in the directory",
         load_le<std::uint16_t>(header + 8), static_cast<unsigned>(entry.method));
  }
  check_number(state, entry, Errc::bad_crc, load_le<std::uint32_t>(header + 14), entry.crc, "checksum");
  check_sizes(state, entry, header, bytes.subspan(kLocalSize + name.size()));
}

// A record's content, found and checked when it is first needed, so that listing 100,000 of them touches
// none.
class EntryStorage final : public ForwardingStorage {
 public:
  EntryStorage(std::shared_ptr<const ZipArchive::State> archive, const ZipEntry& entry, FileAccess access)
      : ForwardingStorage(entry.size), archive_(std::move(archive)), entry_(&entry), access_(access) {}

 private:
  [[nodiscard]] const Storage& content() const override {
    std::call_once(once_, [this] {
      auto packed = archive_->packed(*entry_, access_);
      if (entry_->method == ZipMethod::stored) {
        content_ = std::move(packed);
      } else {
        content_ = Storage::deferred(entry_->size,
                                     [archive = archive_, entry = entry_, packed](std::span<std::byte> out) {
                                       archive->inflate(*entry, *packed, out);
                                     });
      }
    });
    return *content_;
  }

  std::shared_ptr<const ZipArchive::State> archive_;
  const ZipEntry* entry_;
  FileAccess access_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const Storage> content_;
};

}  // namespace

void ZipSource::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (!fits(offset, out.size(), size)) {
    fail(Errc::truncated, where, "needs {} bytes at offset {}, the archive has {}", out.size(), offset, size);
  }
  if (out.empty()) return;
  if (file)
    file->read(base + offset, out);
  else
    bytes->read(offset, out);
}

std::uint64_t ZipArchive::State::data_offset(const ZipEntry& entry) const {
  std::array<std::byte, 512> near{};  // header, name and PyTorch's padding, in all but odd archives
  const std::uint64_t room = entry.limit - entry.header;
  std::span<std::byte> bytes =
      std::span(near).first(static_cast<std::size_t>(std::min<std::uint64_t>(room, near.size())));
  source.read(entry.header, bytes);
  if (load_le<std::uint32_t>(bytes.data()) != kLocalSignature) {
    fail(Errc::bad_zip, where(entry), "no local header at offset {}", entry.header);
  }
  const std::uint64_t length =
      kLocalSize + load_le<std::uint16_t>(bytes.data() + 26) + load_le<std::uint16_t>(bytes.data() + 28);
  if (length > room || entry.packed_size > room - length) {
    // A longer name in the local header is the likelier reason when the names differ.
    const std::uint64_t shown = std::min<std::uint64_t>({room, length, bytes.size()}) - kLocalSize;
    if (as_text(bytes).substr(kLocalSize,
                              std::min<std::uint64_t>(shown, load_le<std::uint16_t>(bytes.data() + 26))) !=
        entry.name) {
      fail(Errc::name_mismatch, where(entry), "has another name in its local header");
    }
    fail(Errc::overlap, where(entry), "{} bytes of header and {} of data at offset {} reach beyond {}",
         length, entry.packed_size, entry.header, entry.limit);
  }
  std::vector<std::byte> far;
  if (length > bytes.size()) {
    far.resize(static_cast<std::size_t>(length));  // at most 128 KiB
    source.read(entry.header, far);
    bytes = far;
  }
  check_local_header(*this, entry, bytes.first(static_cast<std::size_t>(length)));
  const std::uint64_t data = entry.header + length;
  if ((entry.flags & kDescriptorFlag) != 0) check_descriptor(*this, entry, data + entry.packed_size);
  return data;
}

std::shared_ptr<const Storage> ZipArchive::State::packed(const ZipEntry& entry, FileAccess access) const {
  const std::uint64_t offset = data_offset(entry);
  if (source.file) return file_storage(source.file, source.base + offset, entry.packed_size, access);
  const std::byte* data = entry.packed_size == 0 ? nullptr : source.bytes->data() + offset;
  return Storage::borrow(static_cast<const void*>(data), entry.packed_size,
                         [keep = source.bytes] { static_cast<void>(keep); });
}

void ZipArchive::State::inflate(const ZipEntry& entry, const Storage& packed,
                                std::span<std::byte> out) const {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (!inflater) throw std::bad_alloc();
  std::byte nothing{};  // an empty output still needs an address
  std::size_t used = 0;
  std::size_t made = 0;
  const auto verdict =
      libdeflate_deflate_decompress_ex(inflater.get(), packed.data(), static_cast<std::size_t>(packed.size()),
                                       out.empty() ? &nothing : out.data(), out.size(), &used, &made);
  switch (verdict) {
    case LIBDEFLATE_SUCCESS:
      break;
    case LIBDEFLATE_BAD_DATA:
      fail(Errc::bad_zip, where(entry), "its {} deflated bytes are damaged", packed.size());
    case LIBDEFLATE_SHORT_OUTPUT:
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      fail(Errc::size_mismatch, where(entry), "its {} deflated bytes unpack to more than the {} it promises",
           packed.size(), out.size());
  }
  if (made != out.size()) {
    fail(Errc::size_mismatch, where(entry), "its {} deflated bytes unpack to {}, it promises {}",
         packed.size(), made, out.size());
  }
  if (used != packed.size()) {
    fail(Errc::bad_zip, where(entry), "its deflated data ends after {} of {} bytes", used, packed.size());
  }
}

namespace {

std::shared_ptr<const ZipArchive::State> make_state(ZipSource source) {
  auto state = std::make_shared<ZipArchive::State>();
  state->source = std::move(source);
  state->directory = read_zip_directory(state->source);
  return state;
}

}  // namespace

ZipArchive ZipArchive::open(std::shared_ptr<const File> file) {
  const std::uint64_t size = file->size();
  return open(std::move(file), 0, size);
}

ZipArchive ZipArchive::open(std::shared_ptr<const File> file, std::uint64_t offset, std::uint64_t length) {
  std::string where = display(file->path());
  if (!fits(offset, length, file->size())) {
    fail(Errc::truncated, where, "an archive of {} bytes at offset {} lies outside the file of {} bytes",
         length, offset, file->size());
  }
  return ZipArchive(make_state({std::move(file), nullptr, offset, length, std::move(where)}));
}

ZipArchive ZipArchive::open(std::shared_ptr<const Storage> bytes, std::string where) {
  const std::uint64_t size = bytes->size();
  return ZipArchive(make_state({nullptr, std::move(bytes), 0, size, std::move(where)}));
}

std::span<const ZipEntry> ZipArchive::entries() const noexcept {
  return state_->directory.entries;
}

const std::vector<std::string>& ZipArchive::anomalies() const noexcept {
  return state_->directory.anomalies;
}

const std::string& ZipArchive::where() const noexcept {
  return state_->source.where;
}

std::string ZipArchive::where(const ZipEntry& entry) const {
  return state_->where(entry);
}

const ZipEntry* ZipArchive::find(std::string_view name, bool any_case) const noexcept {
  const ZipDirectory& directory = state_->directory;
  std::string folded;
  fold_case(name, folded);
  const auto found = directory.index.find(hash_name(folded), [&](std::size_t i) {
    const std::string_view other = directory.entries[i].name;
    return other == name || (any_case && equal_any_case(other, name));
  });
  return found ? &directory.entries[*found] : nullptr;
}

std::shared_ptr<const Storage> ZipArchive::storage(const ZipEntry& entry, FileAccess access) const {
  return std::make_shared<EntryStorage>(state_, entry, access);
}

std::vector<std::byte> ZipArchive::read(const ZipEntry& entry, std::uint64_t most) const {
  if (entry.size > most) {
    fail(Errc::expansion_limit, where(entry), "{} bytes, at most {} are read at once", entry.size, most);
  }
  const auto packed = state_->packed(entry, FileAccess::read);
  std::vector<std::byte> out(static_cast<std::size_t>(entry.size));
  if (entry.method == ZipMethod::stored)
    packed->read(0, out);
  else
    state_->inflate(entry, *packed, out);
  return out;
}

std::vector<std::byte> ZipArchive::head(const ZipEntry& entry, std::size_t most) const {
  const auto packed = state_->packed(entry, FileAccess::read);
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(most, entry.size));
  if (entry.method != ZipMethod::stored) return inflate_head(*packed, length, where(entry));
  std::vector<std::byte> out(length);
  packed->read(0, out);
  return out;
}

std::uint64_t ZipArchive::check_header(const ZipEntry& entry) const {
  return state_->data_offset(entry);
}

bool ZipArchive::check_crc(const ZipEntry& entry) const {
  const auto content = storage(entry, FileAccess::read);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, entry.size)));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < entry.size; at += buffer.size()) {
    const auto piece = std::span(buffer).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), entry.size - at)));
    content->read(at, piece);
    crc = crc32(crc, piece);
  }
  if (entry.size == 0) static_cast<void>(check_header(entry));
  if (!entry.has_crc()) return false;
  if (crc != entry.crc)
    fail(Errc::bad_crc, where(entry), "checksum {:#010x}, the directory says {:#010x} (damaged?)", crc,
         entry.crc);
  return true;
}

}  // namespace ballast
