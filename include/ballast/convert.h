// SPDX-License-Identifier: Apache-2.0
// convert(): one file into another, with the steps of steps.h between. Streams; the output appears whole or
// not at all. Part of ballast::import.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/io.h"
#include "ballast/progress.h"
#include "ballast/quantized.h"
#include "ballast/steps.h"

namespace ballast {

/// What floating-point tensors become: .dtype = Precision::half, or any floating dtype.
using TargetDType = std::variant<Precision, DType>;

/// In the order of work.
struct ConvertOptions {
  Io io = Io::automatic;          ///< how the input comes into memory
  bool inert = false;             ///< read past calls in a pickle that could run code
  double expansion = kExpansion;  ///< as OpenOptions::expansion
  bool check =
      true;  ///< compare the checksums the input holds (zip, records): Errc::bad_crc, nothing is written
  std::optional<std::string> root =
      {};  ///< dotted path of the state dict; "" takes everything; absent: it is found by itself
  std::vector<RenameRule> rename = {};
  std::vector<rules::Rule> rules = {};
  std::string rules_file = {};  ///< docs/rules.md; a receipt holds its text
  std::vector<std::string> reindex =
      {};  ///< patterns on prefixes ("layers\."): the numbers behind them become 0, 1, 2, …
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  TargetDType dtype = Precision::keep;
  /// Norms with statistics (running_mean and running_var beside each other, of one shape [n]) as a whole keep
  /// their dtype when the new one is narrower and of 16 bits or fewer, as in load().
  bool keep_statistics = true;
  std::vector<std::string> keep_dtype = {};  ///< patterns: tensors that do so, too
  Quantize quantize = Quantize::none;        ///< tensors of two dimensions and more (quantized.h)
  Format format = {};                        ///< by the extension when none is said
  bool simplify = false;  ///< to .pt: foreign classes as the dicts, lists, numbers and text they are made of
  std::uint64_t shard_bytes = 0;  ///< not 0: Safetensors files of at most so much data each (save_shards)
  std::string receipt = {};       ///< where to write a receipt (receipt.h); none when empty
  bool overwrite = false;         ///< the output, and the receipt
  Progress progress = {};
};

/// What the steps made of a checkpoint.
struct Converted {
  Checkpoint checkpoint;
  std::vector<std::string> origins;    ///< for each tensor the key or keys ("a + b") it comes from
  std::string root;                    ///< where the state dict was found by itself
  std::vector<std::string> unmatched;  ///< patterns that matched nothing
  Checkpoint before = {};              ///< the input
  Checkpoint taken = {};               ///< what lies under its root
  std::uint64_t cast = 0;              ///< tensors that have another dtype now
  /// What the cast did to values; counted as they are read, so complete when the output is written.
  std::shared_ptr<CastCount> count = std::make_shared<CastCount>();
  std::vector<QuantizedTensor> quantized = {};  ///< with the error of each
  SavedShards shards = {};                      ///< what was written, with shard_bytes
};

/// Root, renames, rules, reindex, filter, cast, quantization. Only quantization reads values; nothing is
/// written yet.
[[nodiscard]] Converted apply_steps(const Checkpoint& in, const ConvertOptions& options);

/// Everything but the writing.
[[nodiscard]] Converted plan_conversion(const std::string& in, const std::string& out,
                                        const ConvertOptions& options = {});

/// Returns what was written. Input, output and receipt must be different files (require_apart()).
Converted convert(const std::string& in, const std::string& out, const ConvertOptions& options = {});

}  // namespace ballast
