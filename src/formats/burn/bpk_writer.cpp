// SPDX-License-Identifier: Apache-2.0
// Burnpack, written: the metadata sorted by name as Burn's maps are, the data in the checkpoint's order.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/utf8.h"
#include "checkpoint/require_data.h"
#include "containers/part_writer.h"
#include "formats/burn/burn.h"
#include "formats/burn/cbor.h"
#include "formats/burn/parts.h"
#include "formats/burn/read_again.h"
#include "formats/one_reading.h"
#include "formats/tensor_image.h"

namespace ballast::burn {
namespace {

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr int kAlignsPacks = 20;  // Burn 0.20

struct Plan {
  std::string head;                  // header, metadata and the zeros behind it
  std::vector<std::uint64_t> begin;  // of each tensor in the data
};

void write_dtype(CborWriter& cbor, const WrittenDType& dtype) {
  if (!dtype.store.empty()) cbor.map(1);
  cbor.text(dtype.name);
  if (!dtype.store.empty()) cbor.text(dtype.store);
}

std::vector<std::uint64_t> place(const Checkpoint& checkpoint, const std::string& where) {
  std::vector<std::uint64_t> begin;
  std::uint64_t end = 0;
  for (const Entry& entry : checkpoint) {
    require_readable(entry.name, entry.shape.size(), where);
    if (entry.bytes > kMaxTensorBytes)
      fail(Errc::not_representable, where, "tensor {} has {} bytes, Burnpack allows {}", quoted(entry.name),
           entry.bytes, kMaxTensorBytes);
    begin.push_back(aligned(end));
    end = checked_add(begin.back(), entry.bytes, where);
  }
  if (end > kMaxFileBytes)
    fail(Errc::not_representable, where, "{} bytes of data, Burnpack allows {}", end, kMaxFileBytes);
  return begin;
}

std::string metadata_of(const Checkpoint& checkpoint, const std::vector<std::uint64_t>& begin,
                        BurnVersion version, const std::string& where) {
  Metadata metadata = checkpoint.metadata.value_or(Metadata());
  const Extras extras = Extras::take(metadata, where);
  std::vector<std::size_t> order(checkpoint.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return checkpoint[a].name < checkpoint[b].name; });

  CborWriter cbor;
  cbor.map(1 + (metadata.empty() ? 0U : 1U) + (extras.scalars.empty() ? 0U : 1U));
  cbor.text("tensors");
  cbor.map(checkpoint.size());
  for (const std::size_t i : order) {
    const Entry entry = checkpoint[i];
    if (!is_utf8(entry.name)) fail(Errc::bad_utf8, where, "tensor name {} is not UTF-8", quoted(entry.name));
    const auto id = extras.ids.find(entry.name);
    const std::uint64_t* number = id == extras.ids.end() ? nullptr : std::get_if<std::uint64_t>(&id->second);
    cbor.text(entry.name);
    cbor.map(number == nullptr ? 3 : 4);
    cbor.text("dtype");
    write_dtype(cbor, written_dtype(entry, extras, version, where));
    cbor.text("shape");
    cbor.array(entry.shape.size());
    for (const std::int64_t dim : entry.shape) cbor.unsigned_number(static_cast<std::uint64_t>(dim));
    cbor.text("data_offsets");
    cbor.array(2);
    cbor.unsigned_number(begin[i]);
    cbor.unsigned_number(begin[i] + entry.bytes);
    if (number == nullptr) continue;
    cbor.text("param_id");
    cbor.unsigned_number(*number);
  }
  if (!metadata.empty()) {
    cbor.text("metadata");
    cbor.map(metadata.size());
    for (const auto& [key, value] : metadata) {
      cbor.text(key);
      cbor.text(value);
    }
  }
  if (!extras.scalars.empty()) {
    cbor.text("scalars");
    cbor.map(extras.scalars.size());
    for (const auto& [key, value] : extras.scalars) {
      cbor.text(key);
      cbor.scalar(value);
    }
  }
  return std::move(cbor).take();
}

Plan make_plan(const Checkpoint& checkpoint, BurnVersion version, const std::string& where) {
  if (version.minor < kAlignsPacks)
    fail(Errc::unsupported, where,
         "Burn 0.{} misreads packs whose tensors are aligned, and no others are written (use .mpk)",
         version.minor);
  if (checkpoint.size() > kMaxTensors)
    fail(Errc::not_representable, where, "{} tensors, Burnpack allows {}", checkpoint.size(), kMaxTensors);
  Plan plan;
  plan.begin = place(checkpoint, where);
  const std::string metadata = metadata_of(checkpoint, plan.begin, version, where);
  if (metadata.size() > kMaxMetadataBytes)
    fail(Errc::header_too_large, where, "the metadata would have {} bytes, Burnpack allows {}",
         metadata.size(), kMaxMetadataBytes);
  plan.head = "NRUB";
  plan.head.append("\1\0", 2);
  const auto size = static_cast<std::uint32_t>(metadata.size());
  plan.head.resize(plan.head.size() + sizeof size);
  std::memcpy(plan.head.data() + plan.head.size() - sizeof size, &size, sizeof size);
  plan.head += metadata;
  plan.head.resize(static_cast<std::size_t>(aligned(plan.head.size())), '\0');
  return plan;
}

}  // namespace

void save_bpk(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  const std::string where = display(path);
  require_data(checkpoint, where);
  Plan plan = make_plan(checkpoint, BurnVersion(options.burn), where);
  const std::uint64_t data = plan.head.size();
  std::vector<containers::Part> parts = {{.at = 0, .before = std::move(plan.head)}};
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const std::uint64_t end = parts.back().end();
    const Entry entry = checkpoint[i];
    BytesInStorage bytes = row_major_bytes(entry.tensor());
    parts.push_back({.at = end,
                     .before = std::string(static_cast<std::size_t>(data + plan.begin[i] - end), '\0'),
                     .storage = std::move(bytes.storage),
                     .offset = bytes.offset,
                     .size = entry.bytes});
  }
  AtomicFile file(path, options.overwrite);
  file.reserve(parts.back().end());
  containers::write_parts(file, parts, {}, options.progress);
  containers::check_sources(parts);
  require_one_reading(file, Meant::none);
  require_read_again(where, [&] { return open_bpk(*file.written()); });
  file.commit();
}

}  // namespace ballast::burn
