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
#include "ballast/steps.h"

namespace ballast {

/// In the order of work.
struct ConvertOptions {
  std::optional<std::string> root =
      {};  ///< dotted path of the state dict; "" takes everything; absent: it is found by itself
  std::vector<RenameRule> rename = {};
  std::vector<rules::Rule> rules = {};
  std::vector<std::string> reindex =
      {};  ///< patterns on prefixes ("layers\."): the numbers behind them become 0, 1, 2, …
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  Precision dtype = Precision::keep;
  SaveOptions file = {};
};

/// What the steps made of a checkpoint.
struct Converted {
  Checkpoint checkpoint;
  std::vector<std::string> origins;  ///< for each tensor the key or keys ("a + b") it comes from
  std::string root;                  ///< where the state dict was found by itself
  std::vector<std::string> idle;     ///< patterns that matched nothing
};

/// Root, renames, rules, reindex, filter and cast; nothing is read or written yet.
[[nodiscard]] Converted apply_steps(const Checkpoint& in, const ConvertOptions& options);

/// A PyTorch file that becomes another one, with no step asked for, keeps all that it holds, tensors or not.
[[nodiscard]] bool keeps_everything(const std::string& out, const ConvertOptions& options);

/// Returns what was written.
Converted convert(const std::string& in, const std::string& out, const ConvertOptions& options = {});

}  // namespace ballast
