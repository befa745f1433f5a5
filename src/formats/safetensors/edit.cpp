// SPDX-License-Identifier: Apache-2.0
// Another header before the same data.
#include <unordered_map>

#include "ballast/display.h"
#include "ballast/nearest.h"
#include "base/atomic_file.h"
#include "base/checked.h"
#include "base/file.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/layout.h"
#include "tensor/mapped.h"

namespace ballast::safetensors {
namespace {

constexpr std::uint64_t kBetweenReports = 64U << 20U;  // of progress

using Renames = std::unordered_map<std::string_view, std::string_view>;

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

std::optional<Metadata> new_metadata(const Header& header, const HeaderEdit& change) {
  if (change.remove_metadata) return std::nullopt;
  return change.metadata ? change.metadata : metadata_of(header);
}

}  // namespace

void edit(const std::string& in, const std::string& out, const HeaderEdit& change,
          const SaveOptions& options) {
  if (change.metadata && change.remove_metadata)
    fail(Errc::invalid_argument, display(in), "metadata cannot be replaced and removed at once");
  const std::shared_ptr<const File> file = File::open(in);
  const Header header =
      read_header(*file_storage(file, 0, file->size(), FileAccess::read), display(in), Mode::strict);
  const auto lines = renamed_lines(header, renames_of(change, display(in)), display(in));
  const std::string head = head_of(lines, new_metadata(header, change), display(out));

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
  target.commit();
}

}  // namespace ballast::safetensors
