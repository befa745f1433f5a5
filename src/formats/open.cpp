// SPDX-License-Identifier: Apache-2.0
// ballast::open(): what a file is, by its content.
#include "formats/open.h"

#include "ballast/display.h"
#include "ballast/safetensors.h"
#include "base/bytes.h"
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

namespace ballast {
namespace {

Checkpoint open_gzip(const Source& source) {
  if (!burn::is_mpk(gunzip_head(source, kMagicBytes)))
    fail(Errc::unknown_format, source.where(), "is a gzip file, and what is in it is no Burn record");
  return burn::open_mpk(Source(gunzip(source), source.where()));
}

Checkpoint open_source(const Source& source, Family family, const std::string& path,
                       const OpenOptions& options) {
  switch (family) {
    case Family::bpk:
      return burn::open_bpk(source);
    case Family::mpk:
      return burn::open_mpk(source);
    case Family::gzip:
      return open_gzip(source);
    case Family::npy:
      return npy::open_npy(source, path);
    case Family::npz:
      return npy::open_npz(source);
    case Family::onnx:
      return onnx_file::open_onnx(source);
    case Family::safetensors:
    case Family::index:
    case Family::torch:
      break;
  }
  return torch::open(source, options);
}

// A shard is no index, and its path was resolved by confined().
Checkpoint open_file(const std::string& path, const OpenOptions& options, bool is_shard) {
  const auto sharing = options.writable ? Sharing::copy_on_write : Sharing::read_only;
  const auto file = File::open(path, {.sharing = sharing, .io = options.io, .follow_links = !is_shard});
  auto head = file->read(0, std::min<std::uint64_t>(file->size(), kMagicBytes));
  if (const std::size_t telling = telling_bytes(head); telling > head.size())
    head = file->read(0, std::min<std::uint64_t>(file->size(), telling));
  const Family family = family_of(head, file->size(), path);
  if (family == Family::index && is_shard)
    fail(Errc::index_mismatch, display(path), "is JSON text, where a shard should be");
  if (family == Family::index) return shards::open_index(path, options);
  if (family == Family::safetensors)
    return safetensors::open(file, safetensors::Mode::strict, options.writable);
  Checkpoint checkpoint = open_source(Source(file), family, path, options);
  record::take_layout_from_tree(checkpoint);
  checkpoint.path = path;
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

Checkpoint open_bytes(std::shared_ptr<const Storage> bytes, const OpenOptions& options) {
  const auto first = [&](std::size_t count) {
    return std::span(bytes->data(), static_cast<std::size_t>(std::min<std::uint64_t>(bytes->size(), count)));
  };
  const std::span<const std::byte> head = first(telling_bytes(first(kMagicBytes)));
  const Family family = family_of(head, bytes->size(), {});
  if (family == Family::safetensors) return marks::with_ties(safetensors::parse(std::move(bytes)));
  return open_source(Source(std::move(bytes), "bytes"), family, {}, options);
}

}  // namespace ballast
