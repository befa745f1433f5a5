// SPDX-License-Identifier: Apache-2.0
// convert(): one file into another, with the steps of steps.h between. Streams; the output appears whole or
// not at all. Part of ballast::import.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/io.h"
#include "ballast/progress.h"
#include "ballast/quantized.h"
#include "ballast/steps.h"

namespace ballast {

/// In the order of work.
struct ConvertOptions {
  Io io = Io::automatic;          ///< how the input comes into memory
  bool inert = false;             ///< read past calls in a pickle that could run code
  double expansion = kExpansion;  ///< as OpenOptions::expansion
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
  Quantize quantize = Quantize::none;  ///< tensors of two dimensions and more (quantized.h)
  Format format = {};                  ///< by the extension when none is said
  bool simplify = false;  ///< to .pt: foreign classes as the dicts, lists, numbers and text they are made of
  std::uint64_t shard_bytes = 0;  ///< not 0: Safetensors files of at most so much data each (save_shards)
  std::string receipt = {};       ///< where to write a receipt (receipt.h); none when empty
  bool overwrite = false;         ///< the output, and the receipt
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

}  // namespace ballast
