// SPDX-License-Identifier: Apache-2.0
// Another header before the same data.

#include "ballast/error.h"
#include "base/atomic_file.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "formats/one_reading.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/layout.h"
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

// The header's lines under their new names; every rename must find its tensor.
std::vector<HeaderLine> renamed_lines(const Header& header, Renames renames, const std::string& where) {
  std::vector<HeaderLine> lines;
  lines.reserve(header.tensors.size());
  for (const HeaderEntry& entry : header.tensors) {
    const auto rename = renames.find(entry.name());
    const std::string_view name = rename == renames.end() ? entry.name() : rename->second;
    if (rename != renames.end()) renames.erase(rename);
    lines.push_back({name, entry.dtype, header.shape(entry), entry.begin, entry.end});
  }
  if (renames.empty()) return lines;
  std::vector<std::string_view> names;
  for (const HeaderEntry& entry : header.tensors) names.push_back(entry.name());
  const std::string_view wanted = renames.begin()->first;
  fail(Errc::not_found, where, "has no tensor {} to rename{}", quoted(wanted), did_you_mean(wanted, names));
}

// What the metadata says of tensors, under their new names.
std::optional<Metadata> renamed_marks(std::optional<Metadata> metadata, const Renames& renames) {
  Checkpoint shell;
  shell.metadata = std::move(metadata);
  const auto now = [&](const std::string& name) {
    const auto found = renames.find(name);
    return found == renames.end() ? name : std::string(found->second);
  };
  const marks::Ties old = marks::ties_of(shell);
  if (!old.empty()) {
    marks::Ties ties;
    for (const auto& [name, of] : old) {
      ties.emplace(name, now(of));
      shell.metadata->erase(name);
    }
    marks::set_ties(shell, ties);
  }
  if (shell.metadata && shell.metadata->contains(marks::kQuantizedKey)) {
    marks::Int8Tensors quantized;
    for (const auto& [name, mark] : marks::quantized_of(shell))
      quantized.emplace(now(name), marks::Int8{now(mark.scale), mark.axis, mark.dtype});
    marks::set_quantized(shell, quantized);
  }
  record::forget_checksums(shell);  // which are by name
  return std::move(shell.metadata);
}

std::optional<Metadata> new_metadata(const Header& header, const HeaderEdit& change,
                                     const std::string& where) {
  if (change.remove_metadata) return std::nullopt;
  if (change.metadata) return change.metadata;
  if (change.rename.empty()) return metadata_of(header);
  return renamed_marks(metadata_of(header), renames_of(change, where));
}

}  // namespace

void edit(const std::string& in, const std::string& out, const HeaderEdit& change,
          const SaveOptions& options) {
  if (change.metadata && change.remove_metadata)
    fail(Errc::invalid_argument, display(in), "metadata cannot be replaced and removed at once");
  const std::shared_ptr<const File> file = File::open(in);
  const Header header =
      read_header(*range_of(*file, 0, file->size(), Access::read), display(in), Mode::strict);
  const auto lines = renamed_lines(header, renames_of(change, display(in)), display(in));
  const std::string head = head_of(lines, new_metadata(header, change, display(in)), display(out));

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
}

}  // namespace ballast::safetensors
