// SPDX-License-Identifier: Apache-2.0
// convert(in, out): open, steps, save. What the tool's convert does, as a function. Part of ballast::import.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/io.h"
#include "ballast/quantized.h"
#include "ballast/steps.h"

namespace ballast {

/// What floating-point tensors become: .dtype = Precision::half, or any floating dtype.
using TargetDType = std::variant<Precision, DType>;

/// The order of the fields is the order of the work.
struct ConvertOptions {
  bool inert = false;  ///< read past calls in a pickle that could run code
  std::optional<std::string> root =
      {};  ///< take what lies under this key; "" takes all; absent: the state dict, found by itself
  std::string rules_file = {};          ///< docs/rules.md
  std::vector<rules::Rule> rules = {};  ///< after those of the file
  std::vector<RenameRule> rename = {};
  std::vector<std::string> include = {};  ///< patterns on names, after renaming
  std::vector<std::string> exclude = {};
  TargetDType dtype = Precision::keep;
  /// Patterns: tensors that keep their dtype when the new one is narrower. By default the statistics of batch
  /// norms.
  std::vector<std::string> not_narrowed = {R"((^|\.)running_(mean|var)$)"};
  bool quantize_int8 = false;  ///< weights as 8-bit integers with scales (quantized.h)
  std::string format = {};     ///< of the output; by its extension when empty
  bool overwrite = false;
  std::string receipt = {};  ///< where to write a receipt (receipt.h); none when empty
  Progress progress = {};    ///< of the writing
};

struct Conversion {
  Checkpoint before;  ///< the input
  Checkpoint taken;   ///< what lies under its root
  Checkpoint after;
  std::string root;  ///< where the state dict was found by itself
  std::uint64_t renamed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t cast = 0;
  std::vector<std::string> idle;  ///< patterns that matched nothing
  std::vector<QuantizedTensor> quantized;
  /// Counted as the tensors are read, so complete when the output is written.
  std::shared_ptr<CastCount> count = std::make_shared<CastCount>();
};

/// Everything but the writing: what the output would hold.
[[nodiscard]] Conversion plan_conversion(const std::string& in, const std::string& out,
                                         const ConvertOptions& options = {});

/// Streams; the output appears whole or not at all, and may be the input. The receipt comes after it.
Conversion convert(const std::string& in, const std::string& out, const ConvertOptions& options = {});

}  // namespace ballast
