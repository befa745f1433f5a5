// SPDX-License-Identifier: Apache-2.0
// The records of a zip archive: their content, stored or inflated.
#include <libdeflate.h>

#include <algorithm>
#include <mutex>

#include "ballast/error.h"
#include "base/blocks.h"
#include "base/bytes.h"
#include "base/crc32.h"
#include "base/hash.h"
#include "base/lazy.h"
#include "containers/gzip.h"
#include "containers/zip.h"
#include "containers/zip_names.h"
#include "tensor/forwarding.h"

namespace ballast::containers {

struct ZipArchive::State {
  std::shared_ptr<const ByteSource> source;
  ZipDirectory directory;

  [[nodiscard]] std::string where(const ZipEntry& entry) const {
    return source->where() + ": entry " + quoted(entry.name);
  }

  /// The record's packed bytes: a range of the source.
  [[nodiscard]] std::shared_ptr<const Storage> packed(const ZipEntry& entry, Access access) const;
  void inflate(const ZipEntry& entry, const Storage& packed, std::span<std::byte> out) const;
  bool check_crc(const ZipEntry& entry, const Storage& content) const;
};

namespace {

// A record's content, made when it is first needed.
class EntryStorage final : public ForwardingStorage {
 public:
  EntryStorage(std::shared_ptr<const ZipArchive::State> archive, const ZipEntry& entry, Access access)
      : ForwardingStorage(entry.size), archive_(std::move(archive)), entry_(&entry), access_(access) {}

  void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const override {
    // What a program may change in place has no checksum any more.
    if (archive_->source->is_writable()) return;
    static_cast<void>(sound_.get([this] { return archive_->check_crc(*entry_, content()); }));
  }

 private:
  [[nodiscard]] const Storage& content() const override {
    const auto make = [this] {
      auto packed = archive_->packed(*entry_, access_);
      if (entry_->method == ZipMethod::stored) return packed;
      return Storage::deferred(entry_->size,
                               [archive = archive_, entry = entry_, packed](std::span<std::byte> out) {
                                 archive->inflate(*entry, *packed, out);
                               });
    };
    return *content_.get(make);
  }

  std::shared_ptr<const ZipArchive::State> archive_;
  const ZipEntry* entry_;
  Access access_;
  Lazy<std::shared_ptr<const Storage>> content_;
  Lazy<bool> sound_;  // whether there is a checksum
};

}  // namespace

std::shared_ptr<const Storage> ZipArchive::State::packed(const ZipEntry& entry, Access access) const {
  return range_of(*source, entry.data, entry.packed_size, access);
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

ZipArchive ZipArchive::open(std::shared_ptr<const ByteSource> source) {
  auto state = std::make_shared<State>();
  state->source = std::move(source);
  state->directory = read_zip_directory(*state->source);
  check_zip_records(*state->source, state->directory);
  return ZipArchive(std::move(state));
}

std::span<const ZipEntry> ZipArchive::entries() const noexcept {
  return state_->directory.entries;
}

const std::vector<std::string>& ZipArchive::anomalies() const noexcept {
  return state_->directory.anomalies;
}

const std::string& ZipArchive::where() const noexcept {
  return state_->source->where();
}

std::string ZipArchive::where(const ZipEntry& entry) const {
  return state_->where(entry);
}

const ZipEntry* ZipArchive::find(std::string_view name, bool any_case) const noexcept {
  const ZipDirectory& directory = state_->directory;
  const auto found = directory.names.find(directory.entries, name);
  if (!found || (!any_case && directory.entries[*found].name != name)) return nullptr;
  return &directory.entries[*found];
}

std::shared_ptr<const Storage> ZipArchive::storage(const ZipEntry& entry, Access access) const {
  return std::make_shared<EntryStorage>(state_, entry, access);
}

std::vector<std::byte> ZipArchive::read(const ZipEntry& entry, std::uint64_t most) const {
  if (entry.size > most) {
    fail(Errc::expansion_limit, where(entry), "{} bytes, at most {} are read at once", entry.size, most);
  }
  const auto packed = state_->packed(entry, Access::read);
  std::vector<std::byte> out(static_cast<std::size_t>(entry.size));
  if (entry.method == ZipMethod::stored)
    packed->read(0, out);
  else
    state_->inflate(entry, *packed, out);
  return out;
}

std::vector<std::byte> ZipArchive::head(const ZipEntry& entry, std::size_t most) const {
  const auto packed = state_->packed(entry, Access::read);
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(most, entry.size));
  if (entry.method != ZipMethod::stored) return inflate_head(*packed, length, where(entry));
  std::vector<std::byte> out(length);
  packed->read(0, out);
  return out;
}

std::uint64_t ZipArchive::check_header(const ZipEntry& entry) const {
  return entry.data;
}

bool ZipArchive::check_crc(const ZipEntry& entry) const {
  const bool has_one = state_->check_crc(entry, *storage(entry, Access::read));
  if (entry.size == 0) static_cast<void>(check_header(entry));
  return has_one;
}

bool ZipArchive::State::check_crc(const ZipEntry& entry, const Storage& content) const {
  std::uint32_t crc = 0;
  for_each_block(content, 0, entry.size,
                 [&](std::uint64_t, std::span<const std::byte> block) { crc = crc32(crc, block); });
  if (!entry.has_crc()) return false;
  if (crc != entry.crc)
    fail(Errc::bad_crc, where(entry), "checksum {:#010x}, the directory says {:#010x} (damaged?)", crc,
         entry.crc);
  return true;
}

}  // namespace ballast::containers
