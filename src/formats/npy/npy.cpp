// SPDX-License-Identifier: Apache-2.0
// Arrays and archives of arrays. Stored entries are views of the file, whatever their order in memory; what
// is compressed or of the other byte order is made when it is first used.
#include "formats/npy/npy.h"

#include <algorithm>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/hash.h"
#include "checkpoint/require_data.h"
#include "containers/expansion.h"
#include "containers/magic.h"
#include "containers/zip.h"
#include "containers/zip_names.h"
#include "containers/zip_records.h"
#include "containers/zip_writer.h"
#include "formats/one_reading.h"
#include "formats/tensor_image.h"

namespace ballast::npy {
namespace {

using containers::ZipRecord;

constexpr std::string_view kSuffix = ".npy";

// The largest element that is swapped as a whole: a complex number is two.
std::size_t swapped_item(DType dtype) {
  const std::size_t bytes = info(dtype).bits / 8;
  return info(dtype).kind == DTypeKind::complex ? bytes / 2 : bytes;
}

std::shared_ptr<const Storage> swapped(const std::shared_ptr<const Storage>& storage, std::uint64_t offset,
                                       std::size_t item) {
  const std::uint64_t size = storage->size() - offset;
  const auto swap = [storage, offset, item](std::span<std::byte> out) {
    storage->read(offset, out);
    for (std::size_t at = 0; at < out.size(); at += item)
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(at),
                   out.begin() + static_cast<std::ptrdiff_t>(at + item));
  };
  return Storage::deferred(size, swap, {storage});
}

// Column-major strides: the first dimension is the innermost.
std::vector<std::int64_t> fortran_strides(ShapeView shape) {
  std::vector<std::int64_t> strides;
  std::int64_t next = 1;
  for (const std::int64_t dim : shape) {
    strides.push_back(next);
    // Of an empty array no stride is ever used; they must only not overflow.
    next = try_mul(next, std::max<std::int64_t>(dim, 1)).value_or(1);
  }
  return strides;
}

void add(Checkpoint& checkpoint, std::string_view name, const Header& header,
         std::shared_ptr<const Storage> storage) {
  std::uint64_t offset = header.data;
  if (header.big_endian) {
    storage = swapped(storage, offset, swapped_item(header.dtype));
    offset = 0;
  }
  const std::uint32_t index = CheckpointBuilder(checkpoint).add_storage(std::move(storage));
  const std::string_view stored = CheckpointBuilder(checkpoint).store_name(name);
  const bool added =
      header.fortran_order
          ? CheckpointBuilder(checkpoint)
                .add_view(stored, header.dtype, header.shape, fortran_strides(header.shape), index,
                          offset * 8)
          : CheckpointBuilder(checkpoint).add_view(stored, header.dtype, header.shape, index, offset * 8);
  if (!added) fail(Errc::duplicate_key, display(checkpoint.path), "two arrays are called {}", quoted(name));
}

std::string stem_of(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name.empty() ? "array" : name;
}

// What could not be read back: names that are no names of entries, or the same to a reader that ignores case.
void check_names(std::span<const containers::ZipRecord> records, const std::string& where) {
  NameSet folded;
  for (const containers::ZipRecord& record : records) {
    containers::check_zip_name(record.name, true, where);
    std::string name;
    containers::fold_case(record.name, name);
    if (!folded.insert(std::move(name)).second)
      fail(Errc::not_representable, where, "{} and another name differ in case alone", quoted(record.name));
  }
}

// numpy.load() looks for "a.npy" among the members first: to it the array "a", whatever array is called
// "a.npy". Such a name; empty when there is none.
std::string_view name_of_two(const Checkpoint& checkpoint) {
  for (const Entry& entry : checkpoint) {
    const bool may_be = entry.name.ends_with(kSuffix);
    if (may_be && checkpoint.contains(entry.name.substr(0, entry.name.size() - kSuffix.size())))
      return entry.name;
  }
  return {};
}

// NumPy takes an archive with nothing in it only in its oldest form: an end record alone.
void write_empty(AtomicFile& file) {
  std::string end("PK\5\6");
  end.resize(containers::zip::kEndSize, '\0');
  file.append(end);
}

}  // namespace

bool is_npz(std::span<const std::byte> head) noexcept {
  if (as_text(head).starts_with("PK\5\6") && head.size() == containers::zip::kEndSize) return true;
  if (!containers::is_zip(head) || head.size() < containers::zip::kLocalSize) return false;
  const auto length = load_le<std::uint16_t>(head.data() + 26);
  return as_text(head.subspan(containers::zip::kLocalSize)).substr(0, length).ends_with(kSuffix);
}

Checkpoint open_npy(const ByteSource& source) {
  const auto first = load_range(source, 0, std::min<std::uint64_t>(source.size(), kMaxHeaderBytes));
  const Header header = header_of(span_of(*first), source.size(), source.where());
  Checkpoint checkpoint;
  checkpoint.format = formats::npy;
  add(checkpoint, stem_of(source.name()), header, range_of(source, 0, source.size()));
  return checkpoint;
}

Checkpoint open_npz(const ByteSource& source) {
  Checkpoint checkpoint;
  checkpoint.format = formats::npz;
  if (source.size() == containers::zip::kEndSize) return checkpoint;  // the end record of an empty archive
  const containers::ZipArchive zip = containers::ZipArchive::open(source.shared_from_this());
  checkpoint.notes = zip.anomalies();
  checkpoint.reserve(zip.entries().size());
  for (const containers::ZipEntry& entry : zip.entries()) {
    if (entry.is_folder()) continue;
    const std::string where = zip.where(entry);
    if (!entry.name.ends_with(kSuffix))
      fail(Errc::unknown_format, where, "is no array: an .npz archive holds .npy files alone");
    if (entry.method != containers::ZipMethod::stored &&
        entry.size > containers::expansion_limit(entry.packed_size))
      fail(Errc::expansion_limit, where, "{} bytes that inflate to {}", entry.packed_size, entry.size);
    const Header header = header_of(zip.head(entry, kMaxHeaderBytes), entry.size, where);
    add(checkpoint, entry.name.substr(0, entry.name.size() - kSuffix.size()), header,
        zip.storage(entry, access_of(source)));
  }
  if (const std::string_view name = name_of_two(checkpoint); !name.empty())
    fail(Errc::duplicate_key, source.where(), "two arrays are {} to NumPy", quoted(name));
  return checkpoint;
}

void save_npy(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  const std::string where = display(path);
  require_data(checkpoint, where);
  if (checkpoint.size() != 1)
    fail(Errc::not_representable, where, "an .npy file holds one array, there are {} tensors (use .npz)",
         checkpoint.size());
  const Entry entry = checkpoint[0];
  BytesInStorage bytes = row_major_bytes(entry.tensor());
  std::vector<containers::Part> parts = {{.at = 0,
                                          .before = header_text(entry, where),
                                          .storage = std::move(bytes.storage),
                                          .offset = bytes.offset,
                                          .size = entry.bytes}};
  AtomicFile file(path, options.overwrite);
  file.reserve(parts.back().end());
  containers::write_parts(file, parts, {}, options.progress);
  containers::check_sources(parts);
  require_one_reading(file, Meant::none);
  file.commit();
}

void save_npz(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  const std::string where = display(path);
  require_data(checkpoint, where);
  std::vector<containers::ZipRecord> records;
  records.reserve(checkpoint.size());
  for (const Entry& entry : checkpoint) {
    auto image = tensor_image(entry.tensor(), header_text(entry, where));
    const std::uint64_t size = image->size();
    records.push_back({std::string(entry.name) + std::string(kSuffix), std::move(image), 0, size});
  }
  check_names(records, where);
  if (const std::string_view name = name_of_two(checkpoint); !name.empty())
    fail(Errc::not_representable, where, "two arrays would be {} to NumPy", quoted(name));
  AtomicFile file(path, options.overwrite);
  if (records.empty()) {
    write_empty(file);
  } else {
    containers::ZipWriter(std::move(records)).write(file, options.progress);
    const Storage* last = nullptr;  // views of one storage mostly follow each other
    for (const Entry& entry : checkpoint) {
      const Storage* storage = entry.tensor().storage().get();
      if (storage != last) storage->check_unchanged();
      last = storage;
    }
  }
  require_one_reading(file, Meant::zip);
  file.commit();
}

}  // namespace ballast::npy
