// SPDX-License-Identifier: Apache-2.0
// convert(): one file into another, with the steps of steps.h between. Streams; the output appears whole or
// not at all. Receipts: what a conversion read, did and wrote, by SHA-256, so that others can check it
// later. Part of ballast::import.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ballast/adapter.h"
#include "ballast/checkpoint.h"
#include "ballast/hash.h"
#include "ballast/io.h"
#include "ballast/quantized.h"
#include "ballast/runtime.h"
#include "ballast/steps.h"

#pragma GCC visibility push(default)

namespace ballast {

/// In the order of work.
struct ConvertOptions {
  Io io = Io::automatic;             ///< how the input comes into memory
  bool inert = false;                ///< read past calls in a pickle that could run code
  double expansion = kExpansion;     ///< as OpenOptions::expansion
  std::vector<Format> formats = {};  ///< as OpenOptions::formats, of the input
  bool check =
      true;  ///< compare the checksums the input holds (zip, records): Errc::bad_crc, nothing is written
  std::optional<std::string> root =
      {};  ///< dotted path of the state dict; "" takes everything; absent: it is found by itself
  std::vector<RenameRule> rename = {};  ///< this and the following up to keep_statistics: as in Steps
  std::vector<rules::Rule> rules = {};
  bool strip_prefixes = false;
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  std::vector<std::string> reindex = {};
  std::vector<std::string> keep_positions = {};
  Precision dtype = Precision::keep;
  std::vector<std::string> keep_dtype = {};
  bool keep_statistics = true;
  /// Whose names and layouts the input has; automatic: what it says, and what its tensors show.
  Adapter adapter = Adapter::automatic;
  /// Whose the output gets (adapt() in adapter.h); automatic: Burn's in Burn's formats, else the input's.
  Adapter layout = Adapter::automatic;
  std::vector<LayerIs> layers = {};    ///< for `layout`: what layers are whose tensors do not tell
  std::string like = {};               ///< for `layout`: a file of the same model as it shall become
  Quantize quantize = Quantize::none;  ///< tensors of two dimensions and more (quantized.h)
  Format format = {};                  ///< by the extension when none is said
  bool simplify = false;  ///< to .pt: foreign classes as the dicts, lists, numbers and text they are made of
  std::string burn = {};  ///< to Burn's files: as SaveOptions::burn
  Metadata meta = {};     ///< as SaveOptions::meta: in addition to what the input says
  std::uint64_t shard_bytes = 0;  ///< not 0: Safetensors files of at most so much data each (save_shards)
  Pack pack = Pack::none;         ///< as SaveOptions::pack
  std::vector<std::string> recipients = {};  ///< as SaveOptions::recipients
  std::string passphrase_file = {};          ///< as SaveOptions::passphrase_file
  std::string receipt = {};                  ///< where to write a Receipt; none when empty
  bool overwrite = false;                    ///< the output, and the receipt
  Progress progress = {};
};

struct Converted : Stepped {
  Checkpoint before = {};                       ///< the input
  std::vector<QuantizedTensor> quantized = {};  ///< with the error of each
  SavedShards shards = {};                      ///< what was written, with shard_bytes
};

/// Everything but the writing.
[[nodiscard]] Converted plan_conversion(const std::string& in, const std::string& out,
                                        const ConvertOptions& options = {});

/// Returns what was written. Input, output and receipt must be different files (require_apart()).
Converted convert(const std::string& in, const std::string& out, const ConvertOptions& options = {});

/// A plain struct and a JSON file (docs/proof.md).
struct Receipt {
  struct File {
    std::string name;  ///< without folders
    std::uint64_t bytes = 0;
    std::string sha256;
  };

  struct Side {
    std::string format;
    std::vector<File> files;
    std::string root;  ///< of its Manifest: equal roots, equal tensors
    std::vector<TensorHash> tensors;
  };

  struct Rename {
    std::string pattern;
    std::string to;
  };

  struct Steps {
    std::string root;   ///< the key that was taken, asked for or found; empty for everything
    std::string rules;  ///< as a rules file; empty when there were none
    std::vector<Rename> rename;
    std::optional<bool> strip_prefixes = {};  ///< true when they were removed
    std::vector<std::string> include;
    std::vector<std::string> exclude;
    std::vector<std::string> reindex;
    std::vector<std::string> keep_positions;
    std::string dtype;                         ///< Safetensors' code; empty when nothing was cast
    std::optional<bool> keep_statistics = {};  ///< of batch norms, in their dtype; none when nothing was cast
    std::vector<std::string> keep_dtype;
    std::string adapter;                   ///< whose layout the input was said to have; empty: it was found
    std::string layout;                    ///< whose layout was asked for; empty: none was
    std::vector<std::string> layers;       ///< "PATTERN=KIND"
    std::string quantize;                  ///< "int8" or empty
    std::uint64_t rounded = 0;             ///< values the cast changed
    std::uint64_t overflowed = 0;          ///< finite values that are finite no more
    std::optional<bool> unchecked = {};    ///< true: the checksums of the input were not compared
    std::optional<Metadata> meta = {};     ///< what was added to the metadata
    std::optional<std::string> pack = {};  ///< "fast" or "small", where the output is packed
  };

  std::int64_t schema = 1;
  std::string producer;  ///< "ballast 0.1.0"
  Side input;
  Steps steps;
  Side output;
};

/// Reads all of it, twice: the files, and the tensors.
[[nodiscard]] Receipt::Side receipt_side(const Checkpoint& checkpoint, const Progress& progress = {});

/// For a conversion that is done; `input` was made before, because the output may have taken its place.
[[nodiscard]] Receipt make_receipt(Receipt::Side input, const Converted& done, const std::string& out,
                                   const ConvertOptions& options);

[[nodiscard]] Receipt read_receipt(const std::string& path);

struct ReceiptCheck {
  bool is_input = false;              ///< the file is what the conversion read, not what it wrote
  std::vector<std::string> problems;  ///< sentences; empty when everything is as the receipt says
};

/// Is this file what the receipt speaks of: the file's bytes and every tensor.
[[nodiscard]] ReceiptCheck check_receipt(const std::string& path, const Receipt& receipt,
                                         const Progress& progress = {});

}  // namespace ballast

#pragma GCC visibility pop
