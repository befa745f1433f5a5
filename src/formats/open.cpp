// SPDX-License-Identifier: Apache-2.0
// ballast::open(): what a file is, by its content.
#include "formats/open.h"

#include "ballast/error.h"
#include "base/fail.h"
#include "base/file.h"
#include "checkpoint/file_options.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "containers/expansion.h"
#include "formats/encrypted.h"
#include "formats/format_table.h"
#include "formats/safetensors/header.h"
#include "formats/shards/shards.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

Checkpoint read_as(Format format, const ByteSource& source, const OpenOptions& options) {
  if (format->open == nullptr)
    fail(Errc::invalid_argument, source.where(), "format {} recognises it, and has no way to open it",
         quoted(format.name()));
  return format->open(source, options);
}

// A shard is no index, and its path was resolved by confined().
Checkpoint open_file(const std::string& path, const OpenOptions& options, bool is_shard) {
  const auto sharing = options.writable ? Sharing::copy_on_write : Sharing::read_only;
  const auto [file, content] =
      open_content(path, {.sharing = sharing, .io = options.io, .follow_links = !is_shard}, options);
  const Format format = format_of(*content, options.formats);
  if (is_shard && format == formats::sharded)
    fail(Errc::index_mismatch, display(path), "is JSON text, where a shard should be");
  // An encrypted index is no file by itself, but its shards lie where the file does.
  Checkpoint checkpoint = format == formats::sharded ? shards::open_index(path, *content, options)
                                                     : read_as(format, *content, options);
  if (!checkpoint.format) checkpoint.format = format;
  safetensors::drop_keys_of_storage(checkpoint);
  checkpoint.path = path;
  layout::take_from_tree(checkpoint);
  layout::keep_evidence(checkpoint);
  file->settle();
  return checkpoint;
}

void require_sense(const OpenOptions& options) {
  require_known(options, "open()", {"inert", "expansion", "formats", "identities", "passphrase_file"});
  if (!(options.expansion >= 0))  // nor is NaN
    fail(Errc::invalid_argument, "open", "expansion is {}: it is 0 or more", options.expansion);
}

// Metadata may give one tensor very many names.
Checkpoint with_all_names(Checkpoint in, const OpenOptions& options, const std::string& where) {
  const std::size_t size = in.size();
  Checkpoint out = marks::with_ties(std::move(in));
  if (out.size() == size) return out;
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < size; ++i) held += out[i].bytes;
  containers::require_shown(out.total_bytes(), held, options.expansion, where);
  return out;
}

}  // namespace

Checkpoint open(const std::string& path, const OpenOptions& options) {
  require_sense(options);
  if (shards::is_folder(path)) return shards::open_folder(path, options);
  return with_all_names(open_file(path, options, false), options, display(path));
}

Checkpoint open_single(const std::string& path, const OpenOptions& options) {
  return open_file(path, options, true);
}

Checkpoint open(const std::shared_ptr<const ByteSource>& given, const OpenOptions& options) {
  if (!given) fail(Errc::invalid_argument, "open", "there is no source");
  require_sense(options);
  const auto source = decrypted(given, options);
  const Format format = format_of(*source, options.formats);
  Checkpoint checkpoint = read_as(format, *source, options);
  if (!checkpoint.format) checkpoint.format = format;
  safetensors::drop_keys_of_storage(checkpoint);
  layout::take_from_tree(checkpoint);
  layout::keep_evidence(checkpoint);
  return with_all_names(std::move(checkpoint), options, source->where());
}

Checkpoint open_bytes(std::shared_ptr<const Storage> bytes, const OpenOptions& options) {
  return open(memory_source(std::move(bytes), "bytes"), options);
}

}  // namespace ballast
