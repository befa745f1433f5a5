// SPDX-License-Identifier: Apache-2.0
// How files are opened and saved, whatever their format: what open(), save() and their likes of one format
// are told. What a function does not know is Errc::invalid_argument there, never left aside.
//
// Throws: nothing by themselves. Owns: options are values. Threads: as values. Costs: a copy copies the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/runtime.h"
#include "ballast/value.h"

#pragma GCC visibility push(default)

namespace ballast {

namespace safetensors {
/// Which files are refused.
enum class Mode : std::uint8_t {
  strict,     ///< what the specification says: duplicate keys, NUL in names and dimensions beyond 63 bits are
              ///< refused too
  reference,  ///< exactly what the reference implementation accepts; packed tensors are bytes, as to it
};
}  // namespace safetensors

namespace torch {
/// How much of a storage is written when tensors use a part of it.
enum class Extent : std::uint8_t {
  automatic,  ///< trees: all of it, as torch.save does, except where it is a whole file's data; plain
              ///< tensors: what they use
  whole,      ///< all of it
  used,       ///< what tensors use; those that overlap stay on one storage
};
}  // namespace torch

/// How open() reads; safetensors::open() and open_record() know `mode` and `verify` beside `io` and
/// `writable`, and nothing else.
struct OpenOptions {
  safetensors::Mode mode = safetensors::Mode::strict;  ///< which files are refused
  Io io = Io::automatic;                               ///< how tensors come into memory
  bool inert = false;     ///< read past calls that could run code; they stay inert objects in the tree
  bool writable = false;  ///< tensors may be written where they lie in the file; the file never changes
  bool verify = false;    ///< records, packed tensors: compare all checksums, which reads all; Errc::bad_crc
  /// All tensors together may show 64 MiB and so many times what the file holds (by strides of 0, sparse
  /// tensors, many names for one): 0 or more. What shows more is refused as Errc::expanded_view
  double expansion = kExpansion;
  std::vector<Format> formats = {};  ///< more than Ballast's own; they are asked first
  /// For files encrypted with age (docs/seal.md): paths of identity files, or their text
  /// ("AGE-SECRET-KEY-1…"). None, and no passphrase: those of set_identities().
  std::vector<std::string> identities = {};
  std::string passphrase_file = {};  ///< the same: a file whose first line is the passphrase
};

/// How save() and its likes write, in the order of work. All know `overwrite` and `progress`.
struct SaveOptions {
  Format format = {};       ///< formats::record, …, or one of your own; by the extension when none is said
  bool plain_dict = false;  ///< PyTorch files: a dict as the root, not an OrderedDict: libtorch reads that
  /// PyTorch files: foreign classes as the dicts, lists, numbers and text they are made of, NumPy's arrays as
  /// tensors, dates and paths as text.
  bool simplify = false;
  torch::Extent extent = torch::Extent::automatic;  ///< PyTorch files: how much of a storage is written
  /// torch::save(), plain tensors: the `_metadata` of the state dict; a checkpoint's tree has its own.
  std::optional<Value> metadata = {};
  /// Burn's files: the oldest Burn that must read them, "0.20"; the newest when empty.
  std::string burn = {};
  /// In addition to what the checkpoint says; Errc::not_representable in other formats than Safetensors and
  /// records.
  Metadata meta = {};
  /// Not 0: Safetensors files of at most so much data each, as save_shards() writes them.
  std::uint64_t shard_bytes = 0;
  /// Compare the checksums of the files the tensors come from: Errc::bad_crc, nothing is written.
  bool check = true;
  /// Safetensors files and records: tensors that gain by it are packed, and unpacked wherever the file is
  /// read. Such a tensor of a record is not used in place.
  Pack pack = Pack::none;
  /// Encrypts with age, for these ("age1…"): the name then ends in ".safetensors.age". Nothing of the content
  /// ever lies on the disk as it is.
  std::vector<std::string> recipients = {};
  std::string passphrase_file = {};  ///< the same with a passphrase, the first line of this file; not both
  bool overwrite = false;
  /// Safetensors files. false: the disk is not waited for; a power cut may leave a damaged file
  bool durable = true;
  Progress progress = {};
};

}  // namespace ballast

#pragma GCC visibility pop
