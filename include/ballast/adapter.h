// SPDX-License-Identifier: Apache-2.0
// Whose names and layouts tensors have, and adapt(): from one world's to another's without a model. PyTorch
// has Linear weights [out, in] and norms with weight and bias; Burn and Ballast itself [in, out], gamma and
// beta.
//
// Throws: what the functions say, and adapt() for damaged marks in the metadata (Metadata) Errc::bad_json,
// bad_utf8, duplicate_key, too_many. Owns: results share the tensors' bytes with what they are made of; names
// are constants. Threads: every function may be called from several at once. Costs: in proportion to the
// names; no tensor's bytes are read, transposed ones are views.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/detail/layer_kind.h"

#pragma GCC visibility push(default)

namespace ballast {

/// Whose names and layouts a file follows.
enum class Adapter : std::uint8_t {
  automatic,  ///< what the file says, by its metadata, names and shapes; PyTorch's when it says nothing
  pytorch,
  none,  ///< native: taken as it is
  burn,
  flax,
  keras,
};

/// "pytorch", "native" and so on, constants: what adapter_named() reads.
[[nodiscard]] std::string_view name(Adapter adapter) noexcept;
/// "pytorch", "burn", "native" (or "none"), "flax", "keras", "automatic". Errc::invalid_argument for all
/// else.
[[nodiscard]] Adapter adapter_named(std::string_view name);

/// Whose layout files of this format hold unless they say otherwise: Burn's formats Burn's, all others
/// PyTorch's.
[[nodiscard]] Adapter usual_adapter(Format format);

/// Whose layout a checkpoint has: what it says, by its metadata, names and shapes. Errc::unsupported when it
/// says one that is not known here, invalid_argument when it says one and shows another.
[[nodiscard]] Adapter adapter_of(const Checkpoint& checkpoint);

/// What the layers are whose path ("encoder.fc", a name without its last part) the pattern matches;
/// LayerKind::none: no layer, its tensors stay as they are.
struct LayerIs {
  std::string match;
  LayerKind kind = LayerKind::none;  ///< what they are
  friend bool operator==(const LayerIs&, const LayerIs&) = default;
};

/// "linear", "embedding", "none". Errc::invalid_argument for all else.
[[nodiscard]] LayerKind layer_kind_named(std::string_view name);

/// What adapt() does with a tensor that nothing decides.
enum class OnUndecided : std::uint8_t {
  error,
  keep,  ///< the tensor stays as it is, and a note says so
};

/// What adapt() is told.
struct AdaptOptions {
  Adapter from = Adapter::automatic;  ///< whose layout they have; automatic: adapter_of()
  Adapter to = Adapter::pytorch;      ///< automatic: nothing changes
  std::vector<LayerIs> layers = {};   ///< the last that matches counts, before all evidence
  const Checkpoint* like = nullptr;   ///< tensors of the same model as they shall become: names and shapes
  OnUndecided undecided = OnUndecided::error;  ///< what neither evidence nor the options decide
};

/// What adapt() made.
struct Adapted {
  Checkpoint checkpoint;               ///< the tensors, with the metadata that says whose layout they have
  std::vector<std::string> origins;    ///< for each tensor the name or names ("a + b") it comes from
  std::vector<std::string> notes;      ///< what was done, and on what evidence
  std::vector<std::string> unmatched;  ///< patterns of `layers` that matched none
};

/// Layers are told by the names and shapes of their tensors. A matrix without a bias may be a Linear or an
/// Embedding, a vector alone a norm or a PReLU: what neither `layers`, `like`, its neighbours nor its name
/// decides is Errc::unsupported, with a list,
/// as are layouts other than PyTorch's, Burn's and Ballast's own, and quantized tensors; invalid_argument
/// when `like` was opened and has another layout than `to`, shape_mismatch when it has other shapes. Nothing
/// is read but names and shapes.
[[nodiscard]] Adapted adapt(const Checkpoint& in, const AdaptOptions& options);

}  // namespace ballast

#pragma GCC visibility pop
