// SPDX-License-Identifier: Apache-2.0
// From a checked header to a Checkpoint.
#include "formats/safetensors/reader.h"

#include <limits>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/file.h"
#include "checkpoint/file_options.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/require_sound.h"
#include "containers/packed.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/packed.h"
#include "formats/safetensors/record_data.h"
#include "tensor/source_storage.h"

namespace ballast::safetensors {
namespace {

// The reference allows dimensions up to 2^64 - 1. Only empty tensors can have them; their shape is shown as
// far as it goes, and a note says so.
void limit_dims(Header& header, Checkpoint& checkpoint) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  for (const HeaderEntry& entry : header.tensors) {
    for (std::uint64_t& dim : std::span(header.dims).subspan(entry.first_dim, entry.rank)) {
      if (dim <= kLargest) continue;
      checkpoint.notes.push_back(fmt::format("tensor {} is empty and has a dimension of {}, shown as {}",
                                             quoted(entry.name()), dim, kLargest));
      dim = kLargest;
    }
  }
}

// What is packed in the file, and how it becomes tensors.
struct Unpacking {
  // The reference knows nothing of it.
  Unpacking(const Header& header, std::string file, Mode mode, bool is_writable)
      : tensors(mode == Mode::reference ? PackedTensors() : PackedTensors(header, file)),
        where(std::move(file)),
        writable(is_writable) {}

  // `stored`: its bytes in the file.
  void add(Checkpoint& checkpoint, const HeaderEntry& entry, const PackedTensor& tensor,
           std::shared_ptr<const Storage> stored) const {
    CheckpointBuilder builder(checkpoint);
    const std::uint32_t storage = builder.add_storage(packed::unpacked_storage(
        std::move(stored), {.file = where,
                            .name = std::string(entry.name()),
                            .how = *packed::split_of(tensor.dtype),
                            .bytes = data_size(tensor.dtype, tensor.shape, where, entry.name()),
                            .xxh3 = tensor.xxh3,
                            .writable = writable}));
    const auto* dims = reinterpret_cast<const std::int64_t*>(tensor.shape.data());
    static_cast<void>(builder.add_view(entry.name(), tensor.dtype, {dims, tensor.shape.size()}, storage, 0));
  }

  PackedTensors tensors;
  std::string where;
  bool writable;
};

// `place(entry)` gives the storage and the byte in it where a tensor begins, `stored(entry)` its bytes alone.
template <class Place, class Stored>
void add_tensors(Checkpoint& checkpoint, Header& header, const Unpacking& unpacking, const Place& place,
                 const Stored& stored) {
  const PackedTensors& packed = unpacking.tensors;
  limit_dims(header, checkpoint);
  checkpoint.reserve(header.tensors.size());
  for (const HeaderEntry& entry : header.tensors) {
    if (const PackedTensor* tensor = packed.empty() ? nullptr : packed.find(entry.name())) {
      unpacking.add(checkpoint, entry, *tensor, stored(entry));
      continue;
    }
    // None is negative now, so that signed and unsigned are the same; a copy could be hundreds of megabytes.
    const auto* dims = reinterpret_cast<const std::int64_t*>(header.dims.data()) + entry.first_dim;
    const auto [storage, byte_offset] = place(entry);
    static_cast<void>(CheckpointBuilder(checkpoint)
                          .add_view(entry.name(), entry.dtype, {dims, entry.rank}, storage,
                                    byte_offset * 8));  // names were settled before
  }
  if (packed.empty()) return;
  remove_packed_keys(checkpoint.metadata);
  checkpoint.notes.push_back(packed_note(checkpoint));
}

// The storage of a record knows the checksums of what is in it, but for packed tensors, which know their own.
// `base`: where the data begins there.
class Summed {
 public:
  Summed(const Checkpoint& checkpoint, const Header& header, const PackedTensors& packed)
      : header_(header), packed_(packed) {
    const std::string* text = record::find(checkpoint, record::kChecksumsKey);
    if (record::is_record(checkpoint) && record::is_readable(checkpoint) && text != nullptr)
      sums_ = std::make_shared<RecordSums>(*text, display(checkpoint.path));
  }

  [[nodiscard]] std::shared_ptr<const Storage> operator()(std::shared_ptr<const Storage> content,
                                                          std::span<const HeaderEntry> tensors,
                                                          std::uint64_t base) const {
    if (!sums_) return content;
    std::vector<RecordPiece> pieces;
    for (const HeaderEntry& entry : tensors) {
      if (entry.begin < entry.end && packed_.find(entry.name()) == nullptr)
        pieces.push_back({entry.begin - base, entry.end - base, entry.name()});
    }
    return record_data(std::move(content), std::move(pieces), sums_, header_.text);
  }

 private:
  const Header& header_;
  const PackedTensors& packed_;
  std::shared_ptr<const RecordSums> sums_;
};

Checkpoint without_tensors(const Header& header, const std::string& path, const std::string& where) {
  require_not_encrypted(header, where);
  Checkpoint checkpoint;
  checkpoint.format = formats::safetensors;
  checkpoint.path = path;
  checkpoint.metadata = metadata_of(header);
  if (record::is_record(checkpoint)) checkpoint.format = formats::record;
  if (!record::is_readable(checkpoint))
    checkpoint.notes.emplace_back(
        "a record of a version newer than this Ballast: it can be listed, not loaded");
  CheckpointBuilder(checkpoint).keep_alive(header.text);
  if (header.repeated_names > 0) {
    checkpoint.notes.push_back(
        fmt::format("{} tensors stand in the header under a name that comes again; the last one counts",
                    header.repeated_names));
  }
  if (std::string note = foreign_packing(header); !note.empty()) checkpoint.notes.push_back(std::move(note));
  return checkpoint;
}

// Those of a record, and those of packed tensors.
void compare_checksums(const Checkpoint& checkpoint) {
  if (record::is_record(checkpoint)) require_checksums(checkpoint);
  require_sound(checkpoint);
}

}  // namespace

std::optional<Metadata> metadata_of(const Header& header) {
  if (!header.metadata) return std::nullopt;
  Metadata metadata;
  for (const auto& [key, value] : *header.metadata) metadata.emplace_hint(metadata.end(), key, value);
  return metadata;
}

Checkpoint open(const std::string& path, const OpenOptions& options) {
  require_known(options, "safetensors::open()", {"mode", "verify"});
  const auto sharing = options.writable ? Sharing::copy_on_write : Sharing::read_only;
  const auto file = File::open(path, {.sharing = sharing, .io = options.io});
  Checkpoint checkpoint = open(*file, options.mode);
  if (options.verify) compare_checksums(checkpoint);
  file->settle();
  return checkpoint;
}

Checkpoint open(const ByteSource& source, Mode mode) {
  Header header = read_header(*range_of(source, 0, source.size(), Access::read), source.where(), mode);
  Checkpoint checkpoint =
      without_tensors(header, file_of(source) != nullptr ? source.name() : "", source.where());
  const Unpacking unpacking(header, source.where(), mode, source.is_writable());
  // What a program may change in place has no checksum any more, and to the reference packed tensors are
  // bytes, of which the record says nothing.
  const bool has_sums = !source.is_writable() && (mode != Mode::reference || !says_packed(header));
  const Summed summed(has_sums ? checkpoint : Checkpoint(), header, unpacking.tensors);
  const auto bytes_of = [&](const HeaderEntry& entry) {
    return range_of(source, header.data_offset + entry.begin, entry.end - entry.begin, Access::read);
  };
  if (source.is_mapped()) {
    const std::uint32_t data =
        CheckpointBuilder(checkpoint)
            .add_storage(summed(range_of(source, header.data_offset, header.data_size, Access::map, true),
                                header.tensors, 0));
    add_tensors(
        checkpoint, header, unpacking, [&](const HeaderEntry& entry) { return std::pair(data, entry.begin); },
        bytes_of);
  } else {
    // A storage for each, so that asking for one tensor's bytes does not read all of them.
    const auto place = [&](const HeaderEntry& entry) {
      const auto bytes = summed(bytes_of(entry), {&entry, 1}, entry.begin);
      return std::pair(CheckpointBuilder(checkpoint).add_storage(bytes), std::uint64_t{0});
    };
    add_tensors(checkpoint, header, unpacking, place, bytes_of);
  }
  return checkpoint;
}

Checkpoint parse(std::shared_ptr<const Storage> bytes, const OpenOptions& options) {
  require_known(options, "safetensors::parse()", {"mode", "verify"});
  if (!bytes) fail(Errc::invalid_argument, "", "there are no bytes to parse");
  const std::string where = "bytes in memory";
  Header header = read_header(*bytes, where, options.mode);
  Checkpoint checkpoint = without_tensors(header, "", where);
  const std::uint32_t data = CheckpointBuilder(checkpoint).add_storage(bytes);
  add_tensors(
      checkpoint, header, Unpacking(header, where, options.mode, false),
      [&](const HeaderEntry& entry) { return std::pair(data, header.data_offset + entry.begin); },
      [&](const HeaderEntry& entry) {
        return slice_storage(bytes, header.data_offset + entry.begin, entry.end - entry.begin);
      });
  if (options.verify) compare_checksums(checkpoint);
  return checkpoint;
}

}  // namespace ballast::safetensors
