// SPDX-License-Identifier: Apache-2.0
// Files of every format: open() tells them apart by their content, save() by the name it is given. Part of
// ballast::import.
#pragma once

#include <string>
#include <string_view>

#include "ballast/checkpoint.h"
#include "ballast/safetensors.h"

namespace ballast {

struct OpenOptions {
  bool map = true;     ///< false: nothing is mapped; tensors are read by position when they are needed
  bool inert = false;  ///< read past calls that could run code; they stay inert objects in the tree
};

/// Any file Ballast reads. What it is is decided by its content, never by its name.
[[nodiscard]] Checkpoint open(const std::string& path, const OpenOptions& options = {});

/// What a file holds besides tensors, or a JSON file, as a tree of values; `dotted` leads to a part of it
/// ("config.optimizer.lr"). Errc::not_found when that is not there, or the format has no such thing.
[[nodiscard]] Value open_value(const std::string& path, std::string_view dotted = {});

struct SaveOptions {
  std::string format =
      {};  ///< "safetensors", "record", "torch-zip", "torch-legacy"; by the extension when empty
  bool simplify =
      false;  ///< PyTorch files: foreign classes as the dicts, lists, numbers and text they are made of
  bool overwrite = false;
  Progress progress = {};
};

/// Atomic: the old file, or the whole new one.
void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});

/// Removes the temporary files of saves still under way. Async-signal-safe: for a program's own SIGINT
/// handler.
void discard_unfinished_files() noexcept;

}  // namespace ballast
