// SPDX-License-Identifier: Apache-2.0
// From an object tree to named tensors: keys, indices and attributes joined by dots, in the order they were
// saved. What an object holds is said by the reader that knows its class (object_classes.h).
// Shared parts get every name they have; a budget
// keeps a small file from naming 10^24 of them.
#pragma once

#include <functional>
#include <string>

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

class ObjectClasses;

/// Hears of every name: the memory it takes and the bytes its tensor shows. May throw.
using Spend = std::function<void(std::uint64_t memory, std::uint64_t data)>;

/// Adds the tensors below `root` to an empty checkpoint, and notes of what it met. `classes`: what its
/// objects mean, where that is not what the tree says itself.
void flatten(const Value& root, Checkpoint& out, const Spend& spend = {},
             const ObjectClasses* classes = nullptr);

/// True for an object that is a whole model to the reader it comes from.
[[nodiscard]] bool is_model(const Value& value);

/// The name a dict key gives: text itself, integers in decimal, everything else as Python prints it.
[[nodiscard]] std::string key_name(const Value& key);

}  // namespace ballast

#pragma GCC visibility pop
