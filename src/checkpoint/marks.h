// SPDX-License-Identifier: Apache-2.0
// What tensors mean besides their numbers: which are one tensor under two names, which are integers with
// scales. In a checkpoint a tie is a fact (two names, one view) and needs no words; a file that holds such a
// tensor once says so in its metadata, under keys that begin with "ballast." and belong to nobody else
// (docs/formats/record.md). This is the one place that reads and writes them; every step that changes names
// or tensors goes through it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::marks {

inline constexpr const char* kTiesKey = "ballast.ties";
inline constexpr const char* kQuantizedKey = "ballast.quantized";

/// Keys of metadata that only Ballast writes.
[[nodiscard]] bool is_reserved(std::string_view key) noexcept;

/// Second name → the name its tensor has in the file.
using Ties = std::map<std::string, std::string>;

/// What the metadata says, in our words or in those of Safetensors' save_model(); Errc::bad_json when it
/// makes no sense.
[[nodiscard]] Ties ties_of(const Checkpoint& checkpoint);
/// With the pairs that Safetensors' own save_model writes, for readers that know only those.
void set_ties(Checkpoint& checkpoint, const Ties& ties);

/// From a file's form to a checkpoint's: tied tensors are there under all their names, and the metadata says
/// nothing of them any more. A checkpoint without such metadata as it is.
[[nodiscard]] Checkpoint with_ties(Checkpoint in);
/// And back: of several names for one view the first stays, the others stand in the metadata.
[[nodiscard]] Checkpoint without_ties(Checkpoint in);

/// How one tensor of 8-bit integers was made: its numbers are q * scale[channel] (quantized.h).
struct Int8 {
  std::string scale;  ///< the name of the tensor of scales
  std::int64_t axis = 0;
  DType dtype = DType::f32;  ///< what it was
  friend bool operator==(const Int8&, const Int8&) = default;
};

using Int8Tensors = std::map<std::string, Int8>;

/// What the metadata says; Errc::bad_json when it makes no sense.
[[nodiscard]] Int8Tensors quantized_of(const Checkpoint& checkpoint);
void set_quantized(Checkpoint& checkpoint, const Int8Tensors& tensors);

/// For a step that gave tensor i of `before` the name names[i] (nullopt: it is gone) and left its numbers
/// alone: the metadata of `after` speaks of the new names. Errc::invalid_argument when integers would lose
/// their scales.
void follow_names(const Checkpoint& before, std::span<const std::optional<std::string>> names,
                  Checkpoint& after);

/// What the user says in addition; a key that is there already gets the new value. Whose layout the tensors
/// have stays as it is, whatever the keys say to others. Errc::not_representable when `format` holds no
/// metadata; Errc::invalid_argument for an empty key, a key of Ballast's own, and a pair that readers would
/// take for a tie.
void add_metadata(Checkpoint& checkpoint, Format format, const Metadata& meta, const std::string& where);

/// One metadata for all parts. Layouts must be the same (Errc::invalid_argument); what only one file can say
/// of itself is left out; where the parts differ in a key of the user's, the first counts and a note says so.
void merge_metadata(std::span<const Checkpoint> parts, Checkpoint& out);

}  // namespace ballast::marks

#pragma GCC visibility pop
