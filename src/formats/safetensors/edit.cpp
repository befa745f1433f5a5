// SPDX-License-Identifier: Apache-2.0
// Another header before the same data.

#include "ballast/error.h"
#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/file_options.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "formats/one_reading.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/layout.h"
#include "formats/safetensors/packed.h"
#include "formats/safetensors/spare.h"
#include "tensor/source_storage.h"

namespace ballast::safetensors {
namespace {

constexpr std::uint64_t kBetweenReports = 64U << 20U;  // of progress

using Renames = NameViewMap<std::string_view>;

Renames renames_of(const HeaderEdit& change, const std::string& where) {
  Renames renames;
  for (const auto& [from, to] : change.rename) {
    if (!renames.emplace(from, to).second)
      fail(Errc::duplicate_key, where, "tensor {} is to be renamed twice", quoted(from));
  }
  return renames;
}

std::string_view renamed(const Renames& renames, std::string_view name) {
  const auto found = renames.find(name);
  return found == renames.end() ? name : found->second;
}

// The names and the metadata alone: what is tied depends on both.
Checkpoint names_of(const Header& header) {
  Checkpoint names;
  names.reserve(header.tensors.size());
  for (const HeaderEntry& entry : header.tensors) {
    Shape shape;
    for (const std::uint64_t dim : header.shape(entry)) shape.push_back(static_cast<std::int64_t>(dim));
    names.add(std::string(entry.name()), Tensor(entry.dtype, shape));
  }
  names.metadata = metadata_of(header);
  remove_packed_keys(names.metadata);
  return names;
}

// Every rename finds a tensor, or the second name of one.
void require_found(const Checkpoint& names, const marks::Ties& ties, const Renames& renames,
                   const std::string& where) {
  for (const auto& [from, to] : renames) {
    if (names.contains(from) || ties.contains(std::string(from))) continue;
    std::vector<std::string_view> all;
    for (const Entry& entry : names) all.push_back(entry.name);
    fail(Errc::not_found, where, "has no tensor {} to rename{}", quoted(from), did_you_mean(from, all));
  }
}

// The header's lines under their new names.
std::vector<HeaderLine> renamed_lines(const Header& header, const Renames& renames) {
  std::vector<HeaderLine> lines;
  lines.reserve(header.tensors.size());
  for (const HeaderEntry& entry : header.tensors)
    lines.push_back(
        {renamed(renames, entry.name()), entry.dtype, header.shape(entry), entry.begin, entry.end});
  return lines;
}

// A second name that a tensor takes would be that tensor's from now on.
marks::Ties renamed_ties(const Checkpoint& names, const marks::Ties& old, const Renames& renames,
                         const std::string& where) {
  marks::Ties ties;
  for (const auto& [name, of] : old)
    if (!ties.emplace(renamed(renames, name), renamed(renames, of)).second)
      fail(Errc::duplicate_key, where, "two tied names become {}", quoted(renamed(renames, name)));
  for (const Entry& entry : names) {
    const std::string name(renamed(renames, entry.name));
    if (ties.contains(name))
      fail(Errc::duplicate_key, where, "tensor {} would get the name {}, which is tied to {}",
           quoted(entry.name), quoted(name), quoted(ties.at(name)));
  }
  return ties;
}

// What the metadata says of tensors, under their new names.
std::optional<Metadata> renamed_marks(Checkpoint names, const Renames& renames, const std::string& where) {
  const marks::Ties old = marks::ties_of(names);
  require_found(names, old, renames, where);
  if (!old.empty()) {
    const marks::Ties ties = renamed_ties(names, old, renames, where);
    for (const auto& [name, of] : old) names.metadata->erase(name);
    marks::set_ties(names, ties);
  }
  if (names.metadata && names.metadata->contains(marks::kQuantizedKey)) {
    const auto now = [&](const std::string& name) { return std::string(renamed(renames, name)); };
    marks::Int8Tensors quantized;
    for (const auto& [name, mark] : marks::quantized_of(names))
      quantized.emplace(now(name), marks::Int8{now(mark.scale), mark.axis, mark.dtype});
    marks::set_quantized(names, quantized);
  }
  record::forget_checksums(names);  // which are by name
  return std::move(names.metadata);
}

// What is packed stays packed, whatever becomes of the other keys.
void keep_packed(const Header& header, const Renames& renames, std::optional<Metadata>& metadata,
                 const std::string& where) {
  require_none_of_storage(metadata, where);
  const PackedTensors packed(header, where);
  packed.renamed([&](const std::string& name) { return renamed(renames, name); }).write(metadata);
}

std::optional<Metadata> metadata_without_packed(const Header& header, const HeaderEdit& change,
                                                const Renames& renames, const std::string& where) {
  std::optional<Metadata> kept = metadata_of(header);
  remove_packed_keys(kept);
  if (!renames.empty()) kept = renamed_marks(names_of(header), renames, where);
  if (!change.remove_metadata && !change.metadata) return kept;
  if (change.metadata && change.metadata->contains(layout::kKey)) return change.metadata;
  // Words like "producer" may go and come; whose layout the tensors have stays, and is said where need be.
  Checkpoint names = names_of(header);
  const std::string whose = layout::of(names);
  names.metadata = change.metadata;
  if (layout::of(names) != whose) layout::set(names, whose);
  return std::move(names.metadata);
}

std::optional<Metadata> new_metadata(const Header& header, const HeaderEdit& change, const Renames& renames,
                                     const std::string& where) {
  std::optional<Metadata> metadata = metadata_without_packed(header, change, renames, where);
  keep_packed(header, renames, metadata, where);
  return metadata;
}

// Somebody else may have changed it since the new metadata was made of the old.
void require_replaced(const Header& header, const HeaderEdit& change, const std::string& where) {
  if (!change.replaces) return;
  std::optional<Metadata> now = metadata_of(header);
  remove_packed_keys(now);
  if (now.value_or(Metadata()) != *change.replaces)
    fail(Errc::file_changed, where, "its metadata was changed by somebody else meanwhile; try again");
}

}  // namespace

bool edit(const std::string& in, const std::string& out, const HeaderEdit& change,
          const SaveOptions& options) {
  require_known(options, "safetensors::edit()", {"durable"});
  if (change.metadata && change.remove_metadata)
    fail(Errc::invalid_argument, display(in), "metadata cannot be replaced and removed at once");
  std::optional<EditLock> lock;
  if (in == out) lock.emplace(in);
  const std::shared_ptr<const File> file = File::open(in);
  const Header header =
      read_header(*range_of(*file, 0, file->size(), Access::read), display(in), Mode::strict);
  require_not_encrypted(header, display(in));
  require_replaced(header, change, display(in));
  const Renames renames = renames_of(change, display(in));
  const auto metadata = new_metadata(header, change, renames, display(in));
  const std::vector<HeaderLine> lines = renamed_lines(header, renames);
  const auto old = change.spare ? file->read(0, header.data_offset) : std::vector<std::byte>();
  const std::string head = change.spare ? head_with_spare(as_text(old), lines, metadata, display(out))
                                        : head_of(lines, metadata, display(out));
  if (change.spare && options.overwrite && lock &&
      write_in_place(*lock, *file, as_text(old), head, options.durable))
    return true;

  AtomicFile target(out, options.overwrite);
  target.reserve(checked_add<std::uint64_t>(head.size(), header.data_size, display(out)));
  target.append(head);
  for (std::uint64_t done = 0; done < header.data_size;) {
    const std::uint64_t count = std::min(kBetweenReports, header.data_size - done);
    target.copy_at(head.size() + done, *file, header.data_offset + done, count);
    done += count;
    if (options.progress) options.progress(done, header.data_size);
  }
  file->check_unchanged();
  require_one_reading(target, Meant::none);
  target.commit();
  return false;
}

}  // namespace ballast::safetensors
