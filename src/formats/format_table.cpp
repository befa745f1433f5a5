// SPDX-License-Identifier: Apache-2.0
// THE table of formats. A row lies in its format's folder (format.cpp there).
#include "formats/format_table.h"

#include <algorithm>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "containers/magic.h"
#include "containers/zip_records.h"

namespace ballast {
namespace {

constexpr Format kFormats[] = {
    formats::safetensors, formats::record, formats::torch_zip, formats::torch_legacy, formats::torch_tar,
    formats::torchscript, formats::pickle, formats::bpk,       formats::mpk,          formats::mpk_gz,
    formats::npz,         formats::npy,    formats::onnx,      formats::sharded};

// How many bytes from the beginning tell what a file is of which these are the first kMagicBytes: the name of
// a zip archive's first record, which says much, may be longer.
std::size_t telling_bytes(std::span<const std::byte> head) noexcept {
  if (!containers::is_zip(head) || head.size() < containers::zip::kLocalSize) return head.size();
  return std::max(head.size(), containers::zip::kLocalSize + load_le<std::uint16_t>(head.data() + 26));
}

// Behind the extension of what is inside.
constexpr std::string_view kEncrypted = ".age";

bool has_extension(Format format, std::string_view path) {
  return std::any_of(format->extensions.begin(), format->extensions.end(), [&](std::string_view extension) {
    return !extension.empty() && path.ends_with(extension);
  });
}

}  // namespace

std::span<const Format> all_formats() noexcept {
  return kFormats;
}

Format format_of(const ByteSource& source, std::span<const Format> more) {
  auto head = source.read(0, std::min<std::uint64_t>(source.size(), containers::kMagicBytes));
  if (const std::size_t telling = telling_bytes(head); telling > head.size())
    head = source.read(0, std::min<std::uint64_t>(source.size(), telling));
  const FileHead file{.bytes = head, .size = source.size(), .name = source.name()};
  Format best;
  Likeness most = Likeness::none;
  for (const std::span<const Format> formats : {more, all_formats()}) {
    for (const Format format : formats) {
      const Likeness likeness = format->recognise == nullptr ? Likeness::none : format->recognise(file);
      if (likeness <= most) continue;
      best = format;
      most = likeness;
    }
  }
  return best;
}

bool has_known_extension(std::string_view path) {
  if (path.ends_with(kEncrypted)) path.remove_suffix(kEncrypted.size());
  return std::any_of(std::begin(kFormats), std::end(kFormats),
                     [&](Format format) { return has_extension(format, path); });
}

std::vector<Format> writable_formats() {
  std::vector<Format> written(std::begin(kFormats), std::end(kFormats));
  std::erase_if(written, [](Format format) { return format->save == nullptr; });
  return written;
}

std::string writable_names() {
  std::string names;
  for (const Format format : writable_formats())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name());
  return names;
}

Format format_named(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](Format format) { return format.name() == name; });
  if (found == std::end(kFormats))
    fail(Errc::invalid_argument, "format", "{} is no format Ballast writes: {}", quoted(name),
         writable_names());
  return *found;
}

Format format_for(const std::string& path, Format format) {
  if (format) return format;
  if (path.ends_with(kEncrypted)) return format_for(path.substr(0, path.size() - kEncrypted.size()));
  for (const Format known : kFormats) {
    if (has_extension(known, path)) return known;
  }
  if (path.ends_with(".onnx"))
    fail(Errc::unsupported, display(path),
         "an ONNX file holds a computation, which weights alone are not: a C++ model is exported by "
         "ballast::onnx::save()");
  if (path.ends_with('/'))
    fail(Errc::invalid_argument, display(path),
         "is a folder: name a file in it, or ask for shards (--shard-size, shard_size, shard_bytes)");
  fail(Errc::invalid_argument, display(path),
       "its extension says no format: name it after one (.safetensors, .pt, .npz …), or say which (--to, "
       "format): {}",
       writable_names());
}

}  // namespace ballast
