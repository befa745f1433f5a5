// SPDX-License-Identifier: Apache-2.0
// From an object tree to named tensors: keys, indices and attributes joined by dots, in the order they were
// saved. A module is walked as its state_dict() would be. Shared parts get every name they have; a budget
// keeps a small file from naming 10^24 of them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"

namespace ballast {

/// What the code of a TorchScript archive says of a class: which of its tensors are parameters and buffers.
struct ScriptClass {
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
};

using ScriptClasses = std::map<std::string, ScriptClass, std::less<>>;

/// Hears of every name: the memory it takes and the bytes its tensor shows. May throw.
using Spend = std::function<void(std::uint64_t memory, std::uint64_t data)>;

/// Adds the tensors below `root` to an empty checkpoint, and notes of what it met. With `script`, objects are
/// TorchScript modules.
void flatten(const Value& root, const ScriptClasses* script, Checkpoint& out, const Spend& spend = {});

/// True for an object whose state is a module's: `_parameters`, `_buffers`, `_modules`.
[[nodiscard]] bool is_module(const Value& value);

/// The name a dict key gives: text itself, integers in decimal, everything else as Python prints it.
[[nodiscard]] std::string key_name(const Value& key);

}  // namespace ballast
