// SPDX-License-Identifier: Apache-2.0
// load(model, checkpoint): weights into a struct, by name. Part of ballast::core; load_file.h has the same
// for a path.
//
// What happens, in this order: root, rename and rules, removal of wrapper prefixes, include and exclude,
// matching (exact key, the adapter's name for it, compacted positions of vectors), choice of variants,
// adaption to the native layout, dtype policy, checks. Only then is the model touched: if anything is wrong,
// LoadError is thrown and the model is as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/module.h"
#include "ballast/report.h"
#include "ballast/steps.h"

namespace ballast {

/// Whose names and layouts a file follows.
enum class Adapter : std::uint8_t {
  automatic,  ///< what the file's metadata says; PyTorch's when it says nothing
  pytorch,
  none,  ///< native: taken as it is
  burn,
  flax,
  keras,
};

[[nodiscard]] std::string_view name(Adapter adapter) noexcept;

/// Whose layout files of this format hold unless they say otherwise: Burn's formats Burn's, all others
/// PyTorch's.
[[nodiscard]] Adapter usual_adapter(Format format);

enum class OnMissing : std::uint8_t {
  error,
  keep,  ///< the tensor stays as it is
  init,  ///< the layer's usual initialisation, the same in every run
};
enum class OnUnused : std::uint8_t { ignore, error };
enum class OnMismatch : std::uint8_t { error, keep };
enum class Variants : std::uint8_t {
  choose,  ///< the alternative that fits the file
  held,    ///< the alternative the model holds, whatever the file looks like
};

/// 8-bit weights with scales that the file's metadata speaks of (quantized.h).
enum class OnQuantized : std::uint8_t {
  dequantize,  ///< into the dtype they had, when they are read
  keep,        ///< integers and scales as they are, for layers that know what to do with them
};

/// Positions of vector members that are not those of the file: layers.0, 2, 4 of the file are 0, 1, 2 of the
/// model.
struct ReindexOptions {
  bool on = true;
  std::vector<std::string> except =
      {};  ///< patterns on the model's prefix ("flows."): there the positions must be the file's
};

struct LoadOptions {
  std::optional<std::string> root = {};  ///< dotted path of the state dict; "" takes everything; absent: the
                                         ///< only one, or of several the one that fits the model
  std::vector<RenameRule> rename = {};
  std::vector<rules::Rule> rules = {};  ///< after rename
  bool strip_prefixes =
      true;  ///< `module.` and `_orig_mod.` before all keys, unless the model has such a member
  std::vector<std::string> include = {};  ///< patterns on keys, after renaming
  std::vector<std::string> exclude = {};
  ReindexOptions reindex = {};
  Variants variants = Variants::choose;
  Adapter adapter = Adapter::automatic;
  OnQuantized quantized = OnQuantized::dequantize;
  Precision dtype = Precision::keep;
  /// Layers whose tensors half and bf16 leave as they are; norms of these two kinds where they have running
  /// statistics.
  std::vector<LayerKind> keep_dtype = {LayerKind::batch_norm, LayerKind::instance_norm};
  OnMissing missing = OnMissing::error;
  OnUnused unused = OnUnused::ignore;
  OnMismatch mismatched = OnMismatch::error;
  bool verify =
      false;  ///< compare the checksums the file holds (zip, records) of all that is taken: Errc::bad_crc
  bool debug = false;  ///< writes debug_keys() to std::clog
};

/// What a model's tensors become when they are saved. Only floating-point tensors are cast.
struct ModelCast {
  Precision dtype = Precision::keep;
  /// Layers whose tensors half and bf16 leave as they are; norms of these two kinds where they have running
  /// statistics.
  std::vector<LayerKind> keep_dtype = {LayerKind::batch_norm, LayerKind::instance_norm};
  std::shared_ptr<CastCount> count = {};  ///< grows as values are read
};

namespace detail {
/// The model's slots with all alternatives, null pointers followed as far as the file goes.
using CollectSlots = std::function<Slots(const FileHas& file_has)>;

template <Module Model>
CollectSlots collector_of(Model& model) {
  return [&model](const FileHas& file_has) {
    return collect_slots(model, Collector::Alternatives::all, file_has);
  };
}

LoadReport load(const CollectSlots& collect, std::span<const Checkpoint> files, const LoadOptions& options);
[[nodiscard]] Checkpoint save(const Slots& slots, Adapter adapter, const ModelCast& cast);
}  // namespace detail

/// Throws LoadError when the model and the checkpoint do not fit; the model is as it was then.
template <Module Model>
LoadReport load(Model& model, const Checkpoint& checkpoint, const LoadOptions& options = {}) {
  return detail::load(detail::collector_of(model), {&checkpoint, 1}, options);
}

/// Several files make up one model: an encoder from one, a head from another. Each has its own root, found or
/// named by the options; no key may be in two of them.
template <Module Model>
LoadReport load(Model& model, const std::vector<Checkpoint>& parts, const LoadOptions& options = {}) {
  return detail::load(detail::collector_of(model), parts, options);
}

/// The model's tensors under the names and in the layouts of `adapter`; nothing is copied before it is
/// written. Tied tensors are there once, with the other names in the metadata. Errc::invalid_argument when a
/// tensor has no data.
template <Module Model>
[[nodiscard]] Checkpoint to_checkpoint(const Model& model, Adapter adapter = Adapter::pytorch,
                                       const ModelCast& cast = {}) {
  return detail::save(detail::collect_slots(model, detail::Collector::Alternatives::held_only), adapter,
                      cast);
}

template <Module Model>
[[nodiscard]] Checkpoint to_checkpoint(const Model& model, Adapter adapter, Precision dtype) {
  return to_checkpoint(model, adapter, ModelCast{.dtype = dtype});
}

/// Key before and after, shape and dtype of every tensor, sorted by the key after: what a rename did, before
/// anything is matched.
[[nodiscard]] std::string debug_keys(const Checkpoint& before, const LoadOptions& options);

}  // namespace ballast
