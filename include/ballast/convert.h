// SPDX-License-Identifier: Apache-2.0
// convert(): one file into another, with the steps of steps.h between. Streams; the output appears whole or
// not at all. Receipts: what a conversion read, did and wrote, by SHA-256, so that others can check it
// later. Part of ballast::import.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; what open(), the steps and save() throw, and what the functions say; nothing is
// written then. Owns: what was done keeps the input's file as long as a tensor of it lives. Threads: every
// function may be called from several at once, for different outputs. Costs: planning reads names
// (quantizing, values too), writing streams every byte once, checksums and a receipt read them once more
// each.
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
  /// From .pt to .pt, too, the state dict alone, found by itself: without any step they keep all they hold.
  bool state_dict = false;
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

/// What convert() did: the steps' results, and what was before and after them.
struct Converted : Stepped {
  Checkpoint before = {};                       ///< the input
  std::vector<QuantizedTensor> quantized = {};  ///< with the error of each
  SavedShards shards = {};                      ///< what was written, with shard_bytes
};

/// Everything but the writing: tensors that are still to be computed. Errc::unsupported for shards of another
/// format than Safetensors, not_representable and invalid_argument for options the output's format has no
/// place for, or that exclude each other (`state_dict` and `root`).
[[nodiscard]] Converted plan_conversion(const std::string& in, const std::string& out,
                                        const ConvertOptions& options = {});

/// Returns what was written. Input, output and receipt must be different files (require_apart());
/// already_exists without `overwrite`, before any work where it can be said. Throws as plan_conversion() and
/// save(); Errc::cannot_decrypt for a receipt of what is encrypted for others alone.
Converted convert(const std::string& in, const std::string& out, const ConvertOptions& options = {});

/// In the order of work.
struct MergeOptions {
  Io io = Io::automatic;                     ///< how the inputs come into memory
  bool inert = false;                        ///< read past calls in a pickle that could run code
  double expansion = kExpansion;             ///< as OpenOptions::expansion, of each input
  std::vector<Format> formats = {};          ///< as OpenOptions::formats, of the inputs
  bool check = true;                         ///< as ConvertOptions::check
  std::optional<std::string> root = {};      ///< as ConvertOptions::root, of each input
  Format format = {};                        ///< by the extension when none is said
  Pack pack = Pack::none;                    ///< as SaveOptions::pack
  std::vector<std::string> recipients = {};  ///< as SaveOptions::recipients
  std::string passphrase_file = {};          ///< as SaveOptions::passphrase_file
  std::string receipt = {};                  ///< where to write a Receipt; none when empty
  bool overwrite = false;                    ///< the output, and the receipt
  Progress progress = {};
};

/// What merge_files() did.
struct Merged {
  Checkpoint checkpoint;           ///< what was written
  std::vector<std::string> roots;  ///< of each input: the key that was taken; empty for everything
  std::vector<std::string> notes;  ///< worth knowing
};

/// The tensors of several files, or of the shards of one, in one file. Errc::duplicate_key, naming both
/// files, when two have a tensor of one name; invalid_argument for no input, one that is named twice, and
/// layouts that differ.
Merged merge_files(const std::vector<std::string>& in, const std::string& out,
                   const MergeOptions& options = {});

/// What edit_metadata() changes.
struct MetadataEdit {
  Metadata set = {};                     ///< keys and what they say from now on
  std::vector<std::string> remove = {};  ///< keys that go
  bool marks = false;        ///< keys by which tensors are tied, quantized or laid out may be among them
  std::string receipt = {};  ///< where to write a Receipt; none when empty
  bool overwrite = false;    ///< `out`, where it is another file, and the receipt
  Progress progress = {};
};

/// What edit_metadata() did.
struct EditedMetadata {
  Metadata metadata;               ///< of all files together, as it is now
  std::string file;                ///< that leads to it: the file, or the index
  std::vector<std::string> files;  ///< that were written: shards that said it already are not
  bool in_place = false;           ///< nothing but headers was written (safetensors::HeaderEdit::spare)
};

/// Changes the metadata of a Safetensors file, or of every shard behind an index: `out` is a copy (of shards:
/// a folder), empty for the files themselves. Each file is the old or the new one, whatever happens; of
/// shards, what an interruption leaves is finished by the same call. Room is left for later edits.
/// Errc::invalid_argument when nothing is to change, for an empty key, and for `marks` keys without it;
/// not_found for a key to be removed that is not there; unsupported for files of another format, and
/// encrypted ones.
EditedMetadata edit_metadata(const std::string& in, const std::string& out, const MetadataEdit& change);

/// A plain struct and a JSON file (docs/proof.md).
struct Receipt {
  /// A file that was read or written.
  struct File {
    std::string name;         ///< without folders
    std::uint64_t bytes = 0;  ///< its size
    std::string sha256;       ///< of all its bytes, 64 hexadecimal digits
  };

  /// What was read, or what was written.
  struct Side {
    std::string format;               ///< its name: "torch-zip"
    std::vector<File> files;          ///< one, or the index and the shards
    std::string root;                 ///< of its Manifest: equal roots, equal tensors
    std::vector<TensorHash> tensors;  ///< by name
  };

  /// One rule of `rename`.
  struct Rename {
    std::string pattern;  ///< as it was given
    std::string to;
  };

  /// What was done between the two: the options, as they were given.
  struct Steps {
    std::string root;            ///< the key that was taken, asked for or found; empty for everything
    std::string rules;           ///< as a rules file; empty when there were none
    std::vector<Rename> rename;  ///< in their order
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
    /// Where the output is encrypted: for whom ("age1…", which are public).
    std::optional<std::vector<std::string>> recipients = {};
    std::optional<bool> passphrase = {};  ///< true: it is encrypted by a passphrase
    // Since these are written, what is not there was not asked for.
    std::optional<bool> whole = {};                 ///< true: everything was asked for, and no state dict
    std::optional<std::string> format = {};         ///< that was asked for, whatever the output's extension
    std::optional<std::uint64_t> shard_bytes = {};  ///< of shards
    std::optional<bool> simplify = {};              ///< true: foreign classes became plain values
    std::optional<std::string> burn = {};           ///< the version of Burn it was written for
    std::optional<std::string> like = {};           ///< the name of that file, without folders
    std::optional<std::vector<std::string>> inputs = {};   ///< of a merge: what was read, in its order
    std::optional<std::vector<std::string>> removed = {};  ///< keys that were removed from the metadata
  };

  std::int64_t schema = 1;                  ///< of the receipt's own form
  std::string producer;                     ///< "ballast 0.1.0"
  std::optional<std::string> command = {};  ///< "shard", "merge", "meta"; none: it was a conversion
  Side input;                               ///< what was read
  Steps steps;                              ///< what was done
  Side output;                              ///< what was written
};

/// Reads all of it, twice: the files, and the tensors. Throws what hash() and hash_file() throw.
[[nodiscard]] Receipt::Side receipt_side(const Checkpoint& checkpoint, const Progress& progress = {});

/// For a conversion that is done; `input` was made before, because the output may have taken its place.
[[nodiscard]] Receipt make_receipt(Receipt::Side input, const Converted& done, const std::string& out,
                                   const ConvertOptions& options);

/// The same for another command ("shard"): `steps` holds what was asked for, `out` is the file or the index
/// that was written.
[[nodiscard]] Receipt make_receipt(std::string command, Receipt::Side input, Receipt::Steps steps,
                                   const std::string& out, const std::string& passphrase_file = {});

/// The receipt in a JSON file. Errc::invalid_argument when it is something else, unsupported for a schema
/// that is not known yet, not_found and type_mismatch for members that are not there or not as they should
/// be, and what open_value() throws.
[[nodiscard]] Receipt read_receipt(const std::string& path);

/// How replay() works.
struct ReplayOptions {
  std::vector<std::string> others = {};  ///< of a merge: what it read beside the first, in its order
  std::string like = {};   ///< the file that ConvertOptions::like was, where the receipt speaks of one
  bool inert = false;      ///< what could run code is read all the same, as names
  bool overwrite = false;  ///< replace what is there
  Progress progress = {};  ///< is told how far it is
};

/// Does what the receipt says again, from `in` to `out`; returns the file that was written, of shards the
/// index. Errc::invalid_argument, before any work, when `in` is not the file the receipt was made of;
/// Errc::unsupported where the output was encrypted, or something was done that is not known here; bad_dtype
/// for a dtype that is none; already_exists without `overwrite`. What is a file of rules to the receipt is
/// data: nothing but `in`, `others`, `out` and `like` is opened.
std::string replay(const Receipt& receipt, const std::string& in, const std::string& out,
                   const ReplayOptions& options = {});

/// What check_receipt() found.
struct ReceiptCheck {
  bool is_input = false;              ///< the file is what the conversion read, not what it wrote
  std::vector<std::string> problems;  ///< sentences; empty when everything is as the receipt says
  std::size_t of_files = 0;  ///< so many of the first speak of the files' bytes, the others of tensors
};

/// Is this file what the receipt speaks of: the file's bytes and every tensor. Of a merge, one of the files
/// that it read is enough. What differs is a problem in the result; throws what open() and reading throw.
[[nodiscard]] ReceiptCheck check_receipt(const std::string& path, const Receipt& receipt,
                                         const Progress& progress = {});

/// The same for what replay() wrote: it is held against what the receipt says was written, also where it
/// equals what was read.
[[nodiscard]] ReceiptCheck check_result(const std::string& path, const Receipt& receipt,
                                        const Progress& progress = {});

/// The same by tensors alone: their names, dtypes, shapes and values, whatever the file's own bytes, its
/// format and its metadata.
[[nodiscard]] ReceiptCheck check_receipt_tensors(const std::string& path, const Receipt& receipt,
                                                 const Progress& progress = {});

/// replay() and check_result(), of a result that nobody keeps: it lies below the system's folder for
/// temporary files, in one that nobody else can look into, and goes with it; discard_unfinished_files()
/// removes both.
[[nodiscard]] ReceiptCheck check_replay(const Receipt& receipt, const std::string& in,
                                        const ReplayOptions& options = {});

}  // namespace ballast

#pragma GCC visibility pop
