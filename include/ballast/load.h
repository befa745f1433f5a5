// SPDX-License-Identifier: Apache-2.0
// load(model, checkpoint): weights into a struct, by name. Part of ballast::core; load_file.h has the same
// for a path.
//
// What happens, in this order: root, rename and rules, removal of wrapper prefixes, include and exclude,
// matching (exact key, the adapter's name for it, compacted positions of vectors), choice of variants,
// adaption to the native layout, dtype policy, checks. Only then is the model touched: if anything is wrong,
// LoadError is thrown and the model is as it was. LoadReport says what a load did, tensor by tensor.
//
// Throws: LoadError (Errc::load_failed) when model and file do not fit, and what the functions say; the model
// is as it was then. Owns: the model's tensors keep the file's bytes; nothing else is kept. Threads: several
// at once for different models; nobody else may use a model that is loaded meanwhile. Costs: names and shapes
// are compared; bytes are read only where a step must compute a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/adapter.h"
#include "ballast/checkpoint.h"
#include "ballast/config.h"
#include "ballast/detail/function.h"
#include "ballast/error.h"
#include "ballast/module.h"
#include "ballast/quantized.h"
#include "ballast/runtime.h"
#include "ballast/shape.h"
#include "ballast/steps.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What a load did, as data; text for people and JSON for programs. A load that fails throws LoadError, which
/// carries the same report.
struct LoadReport {
  /// `source` is the key as it is in the file ("a + b" when several make one tensor), `target` the path in
  /// the model.
  struct Item {
    std::string source;       ///< the key in the file
    std::string target;       ///< the path in the model
    std::string detail = {};  ///< what was done, or why not
  };

  /// A tensor of the file that does not fit its place.
  struct Mismatch {
    std::string source;  ///< the key in the file
    std::string target;  ///< the path in the model
    Shape file_shape;    ///< as it stands in the file
    Shape
        model_shape;  ///< what would fit there, in the file's layout: [out, in] of a Linear in a PyTorch file
    std::string reason;  ///< for people: what differs, and the likely cause
  };

  std::vector<Item> applied;  ///< of a failed load: what would have been
  std::vector<Item> missing;  ///< source: the key that was looked for; detail: what was near
  std::vector<Item> unused;   ///< no target; detail: dtype and shape
  std::vector<Mismatch>
      mismatched;             ///< wrong shape or dtype; variants that no alternative, or more than one, fits
  std::vector<Item> skipped;  ///< kept out by include and exclude; the model's tensors stay as they were
  std::vector<Item> renamed;  ///< target: the key after rules and removed prefixes
  std::vector<Item> adapted;  ///< detail: what was done, "transposed"
  std::vector<Item> reindexed;  ///< detail: the position in the file
  std::vector<Item> cast;  ///< detail: "F32 → F16", how many values were rounded, how many became infinite
  std::uint64_t rounded = 0;       ///< values that casts changed, of all tensors
  std::uint64_t overflowed = 0;    ///< finite values that are finite no more
  std::vector<Item> initialized;   ///< missing, and filled as OnMissing::init asks
  std::vector<std::string> notes;  ///< sentences for people
  std::vector<RenameRule>
      suggestions;      ///< rules that would give missing tensors a source, to be looked at and pasted
  std::string file;     ///< where the checkpoint came from
  bool failed = false;  ///< nothing was loaded; the model is as it was
  std::string
      debug_keys;  ///< with LoadOptions::debug, what debug_keys() says of the file; not part of text()

  /// Nothing missing, nothing mismatched.
  [[nodiscard]] bool complete() const noexcept { return missing.empty() && mismatched.empty(); }

  /// Several lines; lists longer than `most` are cut with a count of the rest.
  [[nodiscard]] std::string text(std::size_t most = 10) const;
  /// {"schema":1,"failed":false,"applied":[{"source","target","detail"}…],…}
  [[nodiscard]] std::string to_json() const;
};

std::ostream& operator<<(std::ostream& out, const LoadReport& report);

/// A load that failed (Errc::load_failed), with the report that says why.
class LoadError : public Error {
 public:
  /// Made by load().
  explicit LoadError(LoadReport report);

  /// What did not fit, and what would have been loaded. Valid as long as the exception.
  [[nodiscard]] const LoadReport& report() const noexcept { return *report_; }

 private:
  std::shared_ptr<const LoadReport> report_;  // exceptions are copied
};

/// What load() does with a tensor of the model that the file does not have.
enum class OnMissing : std::uint8_t {
  error,
  keep,  ///< the tensor stays as it is
  init,  ///< the layer's usual initialisation, the same in every run
};
/// What load() does with a tensor of the file that the model does not take.
enum class OnUnused : std::uint8_t { ignore, error };
/// What load() does with a tensor of another shape: keep leaves the model's as it is.
enum class OnMismatch : std::uint8_t { error, keep };
/// Which alternative of a std::variant is filled.
enum class Variants : std::uint8_t {
  choose,  ///< the alternative that fits the file
  held,    ///< the alternative the model holds, whatever the file looks like
};

/// What load() is told, in the order of work; the steps are those of Steps.
struct LoadOptions {
  std::optional<std::string> root = {};  ///< dotted path of the state dict; "" takes everything; absent: the
                                         ///< only one, or of several the one that fits the model
  /// {{pattern, to}, …}: as rename()
  std::vector<RenameRule> rename = {};
  std::vector<rules::Rule> rules = {};  ///< after rename
  bool strip_prefixes =
      true;  ///< `module.` and `_orig_mod.` before all keys, unless the model has such a member
  std::vector<std::string> include = {};  ///< patterns on keys, after renaming
  std::vector<std::string> exclude = {};
  /// Patterns on the model's prefix ("layers."): there the numbers may be others than the file's, as long as
  /// the order is the same (layers.0, 2, 4 of the file are 0, 1, 2 of the model). "" matches everywhere;
  /// none: nowhere.
  std::vector<std::string> reindex = {""};
  std::vector<std::string> keep_positions = {};  ///< patterns on prefixes: but not the numbers behind these
  Variants variants = Variants::choose;          ///< which alternative of a std::variant is filled
  /// Whose layout the file has; automatic: what it says and what its tensors show.
  Adapter adapter = Adapter::automatic;
  OnQuantized quantized = OnQuantized::dequantize;  ///< keep: for layers that know what to do with integers
  Precision dtype = Precision::keep;
  std::vector<std::string> keep_dtype = {};  ///< patterns on the model's names: as in ModelCast
  bool keep_statistics = true;
  std::vector<LayerKind> keep_layers = {};
  OnMissing missing = OnMissing::error;       ///< tensors the file does not have
  OnUnused unused = OnUnused::ignore;         ///< tensors the model does not take
  OnMismatch mismatched = OnMismatch::error;  ///< tensors of another shape
  bool verify =
      false;  ///< compare the checksums the file holds (zip, records) of all that is taken: Errc::bad_crc
  bool debug = false;  ///< LoadReport::debug_keys, every key before and after; of a failed load too
};

/// What a model's tensors become when they are saved. Only floating-point tensors are cast.
struct ModelCast {
  Precision dtype = Precision::keep;
  /// Patterns on the model's names or the file's: tensors that 16 bits and fewer leave wider. Errc::not_found
  /// for one that matches none.
  std::vector<std::string> keep_dtype = {};
  bool keep_statistics = true;              ///< batch and instance norms with running statistics, too
  std::vector<LayerKind> keep_layers = {};  ///< and all layers of these kinds
  std::shared_ptr<CastCount> count = {};    ///< grows as values are read
};

/// A configuration on its way into a record: any type that save_config() takes.
class RecordConfig {
 public:
  RecordConfig() = default;

  /// Writes it down at once. Errc::not_representable for numbers JSON does not have.
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, RecordConfig>) RecordConfig(const T& config)
      : json(detail::config_text(config, "config")), type(detail::type_name<T>()) {}

  std::optional<std::string> json = {};  ///< none: no configuration
  std::string type = {};                 ///< the name of its C++ type, for people
};

/// How a model is written, in the order of work: save(model, path) and save_record(model, path).
struct SaveModelOptions {
  /// Whose names and layouts are written; automatic: Ballast's own by save_record(), Burn's in Burn's
  /// formats, else PyTorch's.
  Adapter adapter = Adapter::automatic;
  Precision dtype = Precision::keep;
  std::vector<std::string> keep_dtype = {};  ///< as in ModelCast
  bool keep_statistics = true;
  std::vector<LayerKind> keep_layers = {};
  Quantize quantize = Quantize::none;  ///< int8: weights of records, with a scale for each channel
  RecordConfig config = {};            ///< records
  Format format = {};                  ///< by the extension when none is said
  Pack pack = Pack::none;              ///< Safetensors files and records: tensors that gain by it are packed
  bool overwrite = false;
  Progress progress = {};
};

namespace detail {
/// The model's slots with all alternatives, null pointers followed as far as the file goes.
using CollectSlots = Function<Slots(const FileHas& file_has)>;

template <Module Model>
CollectSlots collector_of(Model& model) {
  return [&model](const FileHas& file_has) {
    return collect_slots(model, Collector::Alternatives::all, file_has);
  };
}

/// Of options that have its fields.
template <class Options>
[[nodiscard]] ModelCast model_cast(const Options& options) {
  return {.dtype = options.dtype,
          .keep_dtype = options.keep_dtype,
          .keep_statistics = options.keep_statistics,
          .keep_layers = options.keep_layers};
}

LoadReport load(const CollectSlots& collect, std::span<const Checkpoint> files, const LoadOptions& options);
[[nodiscard]] Checkpoint save(const Slots& slots, Adapter adapter, const ModelCast& cast);
}  // namespace detail

/// Fills the model's tensors with views of the checkpoint's: no byte is copied unless a step must compute it,
/// and the file stays mapped as long as one of them lives. Gives the report of every key. Throws LoadError
/// when the model and the checkpoint do not fit; Errc::invalid_argument for options that make no sense and
/// for several state dicts that fit, not_found for a `root` or an `include` that finds nothing, bad_crc with
/// `verify`; for damaged marks in the metadata (Metadata) bad_json, bad_utf8, duplicate_key, too_many,
/// bad_dtype, unsupported; what the steps throw, and reading, where a tensor must be computed. The model is
/// as it was then. Nobody else may use it meanwhile.
template <Module Model>
LoadReport load(Model& model, const Checkpoint& checkpoint, const LoadOptions& options = {}) {
  return detail::load(detail::collector_of(model), {&checkpoint, 1}, options);
}

/// Several files make up one model: an encoder from one, a head from another. Each has its own root, found or
/// named by the options; no key may be in two of them (Errc::duplicate_key); none at all are
/// Errc::invalid_argument.
template <Module Model>
LoadReport load(Model& model, const std::vector<Checkpoint>& parts, const LoadOptions& options = {}) {
  return detail::load(detail::collector_of(model), parts, options);
}

/// The model's tensors under the names and in the layouts of `adapter`; nothing is copied before it is
/// written. Tied tensors are there once, with the other names in the metadata. Errc::invalid_argument when a
/// tensor has no data, not_found for a `keep_dtype` that matches none.
template <Module Model>
[[nodiscard]] Checkpoint to_checkpoint(const Model& model, Adapter adapter = Adapter::pytorch,
                                       const ModelCast& cast = {}) {
  return detail::save(detail::collect_slots(model, detail::Collector::Alternatives::held_only), adapter,
                      cast);
}

/// The same with a dtype alone.
template <Module Model>
[[nodiscard]] Checkpoint to_checkpoint(const Model& model, Adapter adapter, Precision dtype) {
  return to_checkpoint(model, adapter, ModelCast{.dtype = dtype});
}

/// Key before and after, shape and dtype of every tensor, sorted by the key after: what a rename did, before
/// anything is matched. Throws what load() throws before that.
[[nodiscard]] std::string debug_keys(const Checkpoint& before, const LoadOptions& options);

}  // namespace ballast

#pragma GCC visibility pop
