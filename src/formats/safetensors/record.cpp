// SPDX-License-Identifier: Apache-2.0
// Records, written and checked. The header stands before the data and holds its checksums: room is left for
// them, and the header is written again when they are known.
#include <algorithm>
#include <numeric>

#include "ballast/detail/record_file.h"
#include "ballast/error.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/hash_xxh3.h"
#include "base/json_writer.h"
#include "base/largest_first.h"
#include "base/shared_progress.h"
#include "base/version.h"
#include "checkpoint/file_options.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/require_data.h"
#include "checkpoint/value_json.h"
#include "formats/one_reading.h"
#include "formats/safetensors/data_copy.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/layout.h"
#include "formats/safetensors/record_data.h"
#include "formats/safetensors/writer.h"
#include "tensor/blocks.h"

namespace ballast {
namespace {

using safetensors::Arrangement;

std::vector<std::uint64_t> sizes_of(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> sizes;
  for (const Entry& entry : checkpoint) sizes.push_back(entry.bytes);
  return sizes;
}

// The checksum of a tensor's row-major bytes; `each` gets them in blocks.
template <class Each>
std::uint64_t checksum(const Tensor& tensor, Each&& each) {
  Xxh3 hash;
  for_each_block(tensor, [&](std::uint64_t at, std::span<const std::byte> bytes) {
    hash.update(bytes);
    each(at, bytes);
  });
  return hash.digest();
}

std::string checksums_json(const Checkpoint& checkpoint, std::span<const std::size_t> order,
                           std::span<const std::uint64_t> sums) {
  JsonWriter json;
  json.begin_object();
  for (const std::size_t tensor : order) json.member(checkpoint[tensor].name, hex(sums[tensor]));
  json.end_object();
  return std::move(json).text();
}

std::vector<std::size_t> order_of(const safetensors::Layout& layout) {
  std::vector<std::size_t> order;
  for (const safetensors::Layout::Place& place : layout.places) order.push_back(place.tensor);
  return order;
}

std::vector<std::size_t> by_name(const Checkpoint& checkpoint) {
  std::vector<std::size_t> order(checkpoint.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return checkpoint[a].name < checkpoint[b].name; });
  return order;
}

Metadata metadata_for(const Checkpoint& checkpoint) {
  Metadata metadata = checkpoint.metadata.value_or(Metadata{});
  metadata[record::kVersionKey] = std::to_string(record::kVersion);
  metadata[record::kProducerKey] = std::string("ballast ") + kVersionText;
  metadata[layout::kKey] = layout::of(checkpoint);
  metadata.emplace(record::kPrecisionKey, "keep");
  return metadata;
}

Checkpoint require_record(Checkpoint checkpoint) {
  if (!record::is_record(checkpoint))
    fail(Errc::unknown_format, display(checkpoint.path),
         "is a Safetensors file, but no record (ballast::open and load read it)");
  record::require_readable(checkpoint);
  return marks::with_ties(std::move(checkpoint));
}

// Packed tensors are computed and not used where they lie: they stand as in every packed file.
void save_packed(Checkpoint checkpoint, AtomicFile& out, const SaveOptions& options) {
  checkpoint.metadata = metadata_for(checkpoint);
  const std::vector<std::size_t> order = by_name(checkpoint);
  safetensors::write_packed(checkpoint, out, options.progress, options.pack,
                            [&](Metadata& metadata, std::span<const std::uint64_t> sums) {
                              metadata[record::kChecksumsKey] = checksums_json(checkpoint, order, sums);
                            });
}

void save_aligned(const Checkpoint& checkpoint, AtomicFile& out, const SaveOptions& options) {
  const std::string where = display(out.path());
  require_data(checkpoint, where);
  std::vector<std::uint64_t> sums(checkpoint.size(), 0);
  Metadata metadata = metadata_for(checkpoint);
  const auto declared = safetensors::declared_by(checkpoint);
  // Where things go depends on the length of the header, and that not on the values of the checksums.
  const auto make_layout = [&](const safetensors::Layout& order) {
    metadata[record::kChecksumsKey] = checksums_json(checkpoint, order_of(order), sums);
    return safetensors::make_layout(declared, metadata, where, Arrangement::aligned);
  };
  const safetensors::Layout layout =
      make_layout(safetensors::make_layout(declared, {}, where, Arrangement::aligned));
  std::vector<std::uint64_t> begins(checkpoint.size(), 0);
  for (const safetensors::Layout::Place& place : layout.places) begins[place.tensor] = place.begin;

  out.reserve(layout.file_size);
  SharedProgress progress(options.progress, layout.file_size - layout.head.size());
  largest_first(sizes_of(checkpoint), [&](std::size_t i) {
    const Tensor tensor = checkpoint[i].tensor();
    sums[i] = checksum(tensor, [&](std::uint64_t at, std::span<const std::byte> bytes) {
      out.write_at(begins[i] + at, bytes);
      progress.add(bytes.size());
    });
    tensor.storage()->check_unchanged();
  });
  out.append(make_layout(layout).head);
  require_one_reading(out, Meant::none);
}

}  // namespace

void save_record(const Checkpoint& in, const std::string& path, const SaveOptions& options) {
  require_known(options, "save_record()", {"pack"});
  const Checkpoint checkpoint = marks::without_ties(in);
  safetensors::require_none_of_storage(checkpoint.metadata, display(path));
  AtomicFile out(path, options.overwrite);
  if (options.pack == Pack::none)
    save_aligned(checkpoint, out, options);
  else
    save_packed(checkpoint, out, options);
  out.commit();
}

Checkpoint open_record(const std::string& path, const OpenOptions& options) {
  return require_record(safetensors::open(path, options));
}

Checkpoint open_record(std::span<const std::byte> bytes, const OpenOptions& options) {
  return require_record(
      safetensors::parse(Storage::borrow(static_cast<const void*>(bytes.data()), bytes.size()), options));
}

void require_checksums(const Checkpoint& checkpoint) {
  const std::vector<RecordFault> faults = check_record(checkpoint);
  if (faults.empty()) return;
  const RecordFault& first = faults.front();
  if (!first.has_checksum)
    fail(Errc::bad_crc, display(checkpoint.path), "tensor {} has no checksum ({} tensors in all)",
         quoted(first.name), faults.size());
  fail(Errc::bad_crc, display(checkpoint.path),
       "tensor {}: its bytes have the checksum {}, the record says {} ({} tensors in all; damaged on the "
       "way?)",
       quoted(first.name), first.found, first.expected, faults.size());
}

std::vector<RecordFault> check_record(const Checkpoint& in, const Progress& progress) {
  record::require_readable(in);
  const Checkpoint checkpoint = marks::without_ties(in);  // a tied tensor is in the file once
  const auto sums = checksums_in(checkpoint);
  SharedProgress shared(progress, checkpoint.total_bytes());
  std::vector<std::optional<RecordFault>> found(checkpoint.size());
  largest_first(sizes_of(checkpoint), [&](std::size_t i) {
    const Entry entry = checkpoint[i];
    const auto expected = sums.find(std::string(entry.name));
    if (expected == sums.end()) {
      found[i] = RecordFault{std::string(entry.name), false, "", ""};
      return;
    }
    const std::string sum = hex(checksum(
        entry.tensor(), [&](std::uint64_t, std::span<const std::byte> bytes) { shared.add(bytes.size()); }));
    if (sum != expected->second) found[i] = RecordFault{std::string(entry.name), true, expected->second, sum};
  });
  std::vector<RecordFault> faults;
  for (auto& fault : found) {
    if (fault) faults.push_back(std::move(*fault));
  }
  return faults;
}

Value record_config_value(const Checkpoint& checkpoint) {
  const std::string* text = record::find(checkpoint, record::kConfigKey);
  if (text == nullptr) fail(Errc::not_found, display(checkpoint.path), "holds no configuration");
  return parse_json(*text, display(checkpoint.path) + ": metadata \"ballast.config\"");
}

}  // namespace ballast
