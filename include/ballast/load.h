// SPDX-License-Identifier: Apache-2.0
// load(model, checkpoint): weights into a struct, by name. Part of ballast::core; load_file.h has the same
// for a path.
//
// What happens, in this order: root, rename and rules, removal of wrapper prefixes, include and exclude,
// matching (exact key, the adapter's name for it, compacted positions of vectors), choice of variants,
// adaption to the native layout, dtype policy, checks. Only then is the model touched: if anything is wrong,
// LoadError is thrown and the model is as it was.
#pragma once

#include <span>
#include <string>
#include <utility>
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

/// Positions of vector members that are not those of the file: layers.0, 2, 4 of the file are 0, 1, 2 of the
/// model.
struct ReindexOptions {
  bool on = true;
  std::vector<std::string> except =
      {};  ///< patterns on the model's prefix ("flows."): there the positions must be the file's
};

struct LoadOptions {
  std::string root =
      {};  ///< key or dotted path of the state dict in the file; found by itself when it is clear
  std::vector<RenameRule> rename = {};
  std::vector<rules::Rule> rules = {};  ///< after rename
  bool strip_prefixes =
      true;  ///< `module.` and `_orig_mod.` before all keys, unless the model has such a member
  std::vector<std::string> include = {};  ///< patterns on keys, after renaming
  std::vector<std::string> exclude = {};
  ReindexOptions reindex = {};
  Variants variants = Variants::choose;
  Adapter adapter = Adapter::automatic;
  Precision dtype = Precision::keep;
  OnMissing missing = OnMissing::error;
  OnUnused unused = OnUnused::ignore;
  OnMismatch mismatched = OnMismatch::error;
  bool debug = false;  ///< writes debug_keys() to std::clog
};

namespace detail {
LoadReport load(Slots slots, std::span<const Checkpoint> files, const LoadOptions& options);
[[nodiscard]] Checkpoint save(const Slots& slots, Adapter adapter, Precision dtype);
}  // namespace detail

/// Throws LoadError when the model and the checkpoint do not fit; the model is as it was then.
template <Module Model>
LoadReport load(Model& model, const Checkpoint& checkpoint, const LoadOptions& options = {}) {
  return detail::load(detail::collect_slots(model, detail::Collector::Alternatives::all), {&checkpoint, 1},
                      options);
}

/// Several files make up one model: an encoder from one, a head from another. Each has its own root, found or
/// named by the options; no key may be in two of them.
template <Module Model>
LoadReport load(Model& model, const std::vector<Checkpoint>& parts, const LoadOptions& options = {}) {
  return detail::load(detail::collect_slots(model, detail::Collector::Alternatives::all), parts, options);
}

/// The model's tensors under the names and in the layouts of `adapter`; nothing is copied before it is
/// written. Tied tensors are there once, with the other names in the metadata. Errc::invalid_argument when a
/// tensor has no data.
template <Module Model>
[[nodiscard]] Checkpoint to_checkpoint(const Model& model, Adapter adapter = Adapter::pytorch,
                                       Precision dtype = Precision::keep) {
  return detail::save(detail::collect_slots(model, detail::Collector::Alternatives::held_only), adapter,
                      dtype);
}

/// Key before and after, shape and dtype of every tensor, sorted by the key after: what a rename did, before
/// anything is matched.
[[nodiscard]] std::string debug_keys(const Checkpoint& before, const LoadOptions& options);

}  // namespace ballast
