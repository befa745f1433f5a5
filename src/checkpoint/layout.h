// SPDX-License-Identifier: Apache-2.0
// Whose names and layouts the tensors of a checkpoint have: "pytorch" (Linear [out, in], norms `weight` and
// `bias`), "burn" and "native" ([in, out], `gamma` and `beta`), "flax", "keras". The one place that finds it
// out and says it. A file's own mark, metadata "ballast.layout", counts most; what a format or a producer
// usually has counts until names and shapes say otherwise; a contradiction is an error, never a guess.
#pragma once

#include <string>
#include <string_view>

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::layout {

inline constexpr const char* kKey = "ballast.layout";

struct Found {
  std::string layout;
  std::string note = {};  ///< what a user must know of how it was found; empty when the file says it itself
};

/// Errc::invalid_argument when what a file says of itself and what it holds contradict each other. A layout
/// that nobody here knows is an answer, too.
[[nodiscard]] Found find(const Checkpoint& checkpoint);
/// The same for those who only pass it on: what a file says by a mark of ours is not held against its
/// tensors.
[[nodiscard]] std::string of(const Checkpoint& checkpoint);

/// Of a file of Burn's without a mark of ours that shows whose layout it has: the mark, so that no step loses
/// what the whole file showed.
void keep_evidence(Checkpoint& checkpoint);
/// False for such a file that shows nothing: its layout is what files of its kind mostly have.
[[nodiscard]] bool is_told(const Checkpoint& checkpoint);

/// The checkpoint's metadata says it, whatever stood there before.
void set(Checkpoint& checkpoint, std::string_view layout);
/// For what is made anew: in the words of that world's own files, and in ours where those prove nothing.
void label(Checkpoint& checkpoint, std::string_view layout);
/// Says it where readers would find another one, or would have to look for it.
void state(Checkpoint& checkpoint, std::string_view layout);
/// For a Safetensors file: state(), or label() where the tensors come from a file of PyTorch's, since
/// transformers reads one only when it says so ("format": "pt").
void state_for_safetensors(Checkpoint& checkpoint, std::string_view layout);

/// In a state dict's `_metadata`, where PyTorch keeps facts about modules, and for readers the way back.
[[nodiscard]] Value in_tree(std::string_view layout);
void take_from_tree(Checkpoint& checkpoint);

}  // namespace ballast::layout

#pragma GCC visibility pop
