// SPDX-License-Identifier: Apache-2.0
// ballast::open(): what a file is, by its content.
#include "formats/open.h"

#include "ballast/display.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/magic.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "formats/burn/burn.h"
#include "formats/gzip.h"
#include "formats/npy/npy.h"
#include "formats/onnx/onnx.h"
#include "formats/safetensors/reader.h"
#include "formats/shards/shards.h"
#include "formats/sniff.h"
#include "formats/torch/reader.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

Checkpoint open_gzip(const ByteSource& source) {
  if (!burn::is_mpk(gunzip_head(source, kMagicBytes)))
    fail(Errc::unknown_format, source.where(), "is a gzip file, and what is in it is no Burn record");
  return burn::open_mpk(*memory_source(gunzip(source), source.name()));
}

Checkpoint open_as(Family family, const ByteSource& source, const OpenOptions& options) {
  switch (family) {
    case Family::bpk:
      return burn::open_bpk(source);
    case Family::mpk:
      return burn::open_mpk(source);
    case Family::gzip:
      return open_gzip(source);
    case Family::npy:
      return npy::open_npy(source);
    case Family::npz:
      return npy::open_npz(source);
    case Family::onnx:
      return onnx_file::open_onnx(source);
    case Family::safetensors:
      return safetensors::open(source, safetensors::Mode::strict);
    case Family::index:
      fail(Errc::unsupported, source.where(),
           "is JSON text: a list of shards must be a file in their folder");
    case Family::torch:
      break;
  }
  return torch::open(source, options);
}

// A shard is no index, and its path was resolved by confined().
Checkpoint open_file(const std::string& path, const OpenOptions& options, bool is_shard) {
  const auto sharing = options.writable ? Sharing::copy_on_write : Sharing::read_only;
  const auto file = File::open(path, {.sharing = sharing, .io = options.io, .follow_links = !is_shard});
  const Family family = family_of(*file);
  if (family == Family::index && is_shard)
    fail(Errc::index_mismatch, display(path), "is JSON text, where a shard should be");
  if (family == Family::index) return shards::open_index(path, options);
  Checkpoint checkpoint = open_as(family, *file, options);
  checkpoint.path = path;
  record::take_layout_from_tree(checkpoint);
  file->settle();
  return checkpoint;
}

}  // namespace

Checkpoint open(const std::string& path, const OpenOptions& options) {
  if (shards::is_folder(path)) return shards::open_folder(path, options);
  return marks::with_ties(open_file(path, options, false));
}

Checkpoint open_single(const std::string& path, const OpenOptions& options) {
  return open_file(path, options, true);
}

Checkpoint open(const std::shared_ptr<const ByteSource>& source, const OpenOptions& options) {
  if (!source) fail(Errc::invalid_argument, "open", "there is no source");
  Checkpoint checkpoint = open_as(family_of(*source), *source, options);
  record::take_layout_from_tree(checkpoint);
  return marks::with_ties(std::move(checkpoint));
}

Checkpoint open_bytes(std::shared_ptr<const Storage> bytes, const OpenOptions& options) {
  return open(memory_source(std::move(bytes), "bytes"), options);
}

}  // namespace ballast
