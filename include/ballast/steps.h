// SPDX-License-Identifier: Apache-2.0
// Steps between opening a file and using it: functions from Checkpoint to Checkpoint. All but in_memory()
// move names and views, never data; what must be computed (a cast, a concatenation) is computed when somebody
// reads it.
// load() and the tool's convert are made of these.
//
// Patterns are RE2's, searched anywhere in the key unless anchored; they take linear time, whatever they are.
// In replacements $1, ${1} and ${name} stand for groups, $$ for a dollar sign. A pattern or replacement that
// makes no sense is Errc::invalid_argument.
//
// Throws: the same, and Errc::too_many or expansion_limit for patterns beyond all measure; in casts
// Errc::bad_dtype for what is no floating dtype; for damaged marks in the metadata (Metadata) Errc::bad_json,
// bad_utf8, duplicate_key, too_many, bad_dtype, unsupported; and what the functions say. Owns: results share
// the tensors' bytes with what they are made of, and keep them alive. Threads: every function may be called
// from several at once. Costs: in proportion to the names; in_memory() alone reads bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)

namespace ballast {

// Rules: renames and changes of tensors, from C++ or from a file that the tool reads too. What a rules file
// (docs/rules.md) calls something, it is called here.
namespace rules {

/// Every match in the name is replaced.
struct Rename {
  std::string match;
  std::string to;
};

/// Takes the tensors away.
struct Drop {
  std::string match;
};

/// A second name for the same tensor; the two stay tied.
struct Alias {
  std::string match;
  std::string to;
};

/// Two dimensions change places.
struct Transpose {
  std::int64_t a = 0;  ///< one of them
  std::int64_t b = 1;  ///< the other
};

/// The dimensions in another order.
struct Permute {
  std::vector<std::int64_t> order;  ///< for each new dimension the old one
};

/// Another shape of as many elements.
struct Reshape {
  std::vector<std::int64_t> shape;  ///< one may be -1
};

/// A part of one dimension, as Python counts.
struct Slice {
  std::int64_t dim = 0;
  std::optional<std::int64_t> start = {};  ///< as Python counts
  std::optional<std::int64_t> stop = {};   ///< as Python counts
  std::optional<std::int64_t> step = {};   ///< as Python counts
};

/// Another dtype, computed when somebody reads it.
struct Cast {
  DType dtype = DType::f32;  ///< what it becomes
};

/// One of these. Never changed; a copy shares it.
class Operation {
 public:
  using Kinds = std::variant<Transpose, Permute, Reshape, Slice, Cast>;  ///< what value() shows

  Operation(Transpose one);  ///< operations are written as what they are
  Operation(Permute one);    ///< the same
  Operation(Reshape one);    ///< the same
  Operation(Slice one);      ///< the same
  Operation(Cast one);       ///< the same

  Operation(const Operation&) = default;  // and no moves, which would leave nothing behind
  Operation& operator=(const Operation&) = default;
  ~Operation() = default;

  /// For std::visit, std::get and their like; valid as long as this is.
  [[nodiscard]] const Kinds& value() const noexcept;

 private:
  std::shared_ptr<const Kinds> value_;  // behind a pointer: a variant costs all who include this 3 MB
};

/// Operations in order (a file's "do"), then the new name, if there is one.
struct Change {
  std::string match;
  std::vector<Operation> operations;  ///< in their order
  std::string to = {};
};

/// One tensor into several along `dim`: of these sizes, or equal ones when there are none.
struct Split {
  std::string match;
  std::vector<std::string> to;  ///< one name for each part
  std::int64_t dim = 0;
  std::vector<std::int64_t> sizes = {};  ///< one for each part
};

/// Several tensors into one: the one that matches and `with`, whose names are made from its groups.
struct Concat {
  std::string match;
  std::vector<std::string> with;  ///< names of the others, in their order
  std::string to;
  std::int64_t dim = 0;
};

/// The same along a new dimension.
struct Stack {
  std::string match;
  std::vector<std::string> with;  ///< names of the others, in their order
  std::string to;
  std::int64_t dim = 0;
};

/// One of these, as Operation is.
class Rule {
 public:
  using Kinds = std::variant<Rename, Drop, Alias, Change, Split, Concat, Stack>;  ///< what value() shows

  Rule(Rename one);  ///< rules are written as what they are
  Rule(Drop one);    ///< the same
  Rule(Alias one);   ///< the same
  Rule(Change one);  ///< the same
  Rule(Split one);   ///< the same
  Rule(Concat one);  ///< the same
  Rule(Stack one);   ///< the same

  Rule(const Rule&) = default;  // and no moves, which would leave nothing behind
  Rule& operator=(const Rule&) = default;
  ~Rule() = default;

  /// For std::visit, std::get and their like; valid as long as this is.
  [[nodiscard]] const Kinds& value() const noexcept;

 private:
  std::shared_ptr<const Kinds> value_;
};

/// The rules of a file: {"rules": [{"match": "(.*)\\.w$", "transpose": [0, 1], "to": "$1.weight"}, …]}.
/// Errc::bad_json for anything else, duplicate_key and bad_utf8 for what JSON does not allow, bad_dtype,
/// header_too_large beyond 64 MiB, file_not_found, permission_denied, not_regular_file, io_error.
[[nodiscard]] std::vector<Rule> read(const std::string& path);
/// The same from text; `where` stands in messages. Errc::bad_json, duplicate_key, bad_utf8, bad_dtype.
[[nodiscard]] std::vector<Rule> parse(std::string_view json, const std::string& where = "rules");
/// What parse() makes the same rules of.
[[nodiscard]] std::string to_json(const std::vector<Rule>& rules);

/// What apply() made.
struct Applied {
  Checkpoint checkpoint;               ///< the tensors under their new names
  std::vector<std::string> origins;    ///< for each tensor the key or keys ("a + b") it comes from
  std::vector<std::string> unmatched;  ///< patterns that matched nothing
};

/// All rules in order, each on the result of the one before. Errc::duplicate_key when two tensors get one
/// name, bad_name when nothing is left of one, shape_mismatch where a tensor has not the dimensions a rule
/// speaks of, not_found for what is to be joined and is not there, invalid_argument for quantized integers
/// that would change, expanded_view, too_many and too_deep for far more than there was. `count` grows as
/// values that a rule casts are read.
[[nodiscard]] Applied apply(const Checkpoint& in, const std::vector<Rule>& rules,
                            const std::shared_ptr<CastCount>& count = {});

}  // namespace rules

/// One rule of `rename`.
using RenameRule = rules::Rename;

/// What floating-point tensors become: any floating dtype (DType::f16, or half), or what they are.
class Precision {
 public:
  /// What they are.
  static const Precision keep;
  static const Precision full;  ///< F32
  static const Precision half;  ///< F16
  /// The upper half of F32.
  static const Precision bf16;
  /// Twice F32.
  static const Precision f64;
  static const Precision as_model;  ///< what the model's tensor has; only for load()

  /// That dtype, which must be a floating one.
  constexpr Precision(DType dtype) noexcept : dtype_(dtype) {}

  /// The dtype, but for keep and as_model.
  [[nodiscard]] constexpr std::optional<DType> dtype() const noexcept { return dtype_; }
  friend constexpr bool operator==(const Precision&, const Precision&) = default;

 private:
  constexpr explicit Precision(bool is_as_model) noexcept : as_model_(is_as_model) {}

  std::optional<DType> dtype_ = {};
  bool as_model_ = false;
};

inline constexpr Precision Precision::keep{false};
inline constexpr Precision Precision::full{DType::f32};
inline constexpr Precision Precision::half{DType::f16};
inline constexpr Precision Precision::bf16{DType::bf16};
inline constexpr Precision Precision::f64{DType::f64};
inline constexpr Precision Precision::as_model{true};

// The state dict inside a checkpoint: training files hold the epoch, the optimizer and much else around the
// weights.

/// A part of the object tree that looks like a model's weights.
struct RootCandidate {
  std::string path;         ///< dotted; empty for the whole file
  std::size_t tensors = 0;  ///< that it holds
  std::uint64_t bytes = 0;  ///< that they take
};

/// Every mapping of names to tensors, and every module, down to three levels; optimizers, schedulers and the
/// like are not looked into. None of a file without tensors. Best first: the whole file, then the names
/// people use (state_dict, model_state_dict, model, …), then all others.
[[nodiscard]] std::vector<RootCandidate> root_candidates(const Checkpoint& checkpoint);

/// "\"model\" (3 tensors, 84 bytes), …", for messages.
[[nodiscard]] std::string to_string(const std::vector<RootCandidate>& candidates);

/// What lies at a dotted path of the tree, its tensors named from there; without a tree, the tensors whose
/// names begin with "path.". Errc::not_found lists the candidates; Errc::type_mismatch when there is
/// something else than tensors by name.
[[nodiscard]] Checkpoint root(const Checkpoint& checkpoint, std::string_view path);

/// What find_root() found.
struct FoundRoot {
  Checkpoint checkpoint;  ///< its tensors, named from there
  std::string path;       ///< where it was found; empty when the whole file is taken
};

/// The only candidate; one under another name that is the same tensors does not count. A file without any is
/// taken whole, and so is a dict of parts none of which has a name people use for a state dict, and one such
/// part beside other tensors. Errc::invalid_argument lists them when there are several: a model and its EMA,
/// a generator and its discriminator. Adds a note when it took a part.
[[nodiscard]] FoundRoot find_root(const Checkpoint& checkpoint);

/// A key before and after.
struct KeyChange {
  std::string from;  ///< as it was
  std::string to;
  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};

/// What a renaming step made.
struct Renamed {
  Checkpoint checkpoint;           ///< same tensors, same order
  std::vector<KeyChange> changed;  ///< only those whose name changed
  std::vector<std::string>
      unmatched;  ///< patterns of rules that matched nothing; also said in the checkpoint's notes
};

/// All rules in order, each on the result of the one before, every match in the key. Errc::duplicate_key when
/// two keys land on one name, bad_name when nothing is left of one.
[[nodiscard]] Renamed rename(const Checkpoint& in, const std::vector<RenameRule>& rules);

/// Removes "module." (DataParallel) and "_orig_mod." (torch.compile) in front of all keys, in any order and
/// number; when one key has none, it removes nothing.
[[nodiscard]] Renamed strip_common_prefixes(const Checkpoint& in);

/// The numbers seen after each prefix, compacted in order: layers.0, layers.2, layers.4 → 0, 1, 2. Blind to
/// any model; only where the prefix ("encoder.layers.") contains a match of one of `prefixes`, everywhere
/// when there are none, and of none of `keep`.
[[nodiscard]] Renamed reindex(const Checkpoint& in, const std::vector<std::string>& prefixes = {},
                              const std::vector<std::string>& keep = {});

/// Keys that match one of `include` (all, when empty) and none of `exclude`, in their order; perhaps none.
[[nodiscard]] Checkpoint filter(const Checkpoint& in, const std::vector<std::string>& include,
                                const std::vector<std::string>& exclude = {});

/// Floating-point tensors only, and only when they are read. Tied tensors stay tied. `except`: patterns:
/// tensors that keep their dtype. `count` grows as values are read. Errc::invalid_argument for
/// Precision::as_model.
[[nodiscard]] Checkpoint cast(const Checkpoint& in, Precision precision,
                              const std::vector<std::string>& except = {},
                              const std::shared_ptr<CastCount>& count = {});

/// For each tensor, sorted by its key: the key before (`origins`, one for each tensor) and the key now, its
/// shape and dtype; a few lines each. As many origins as tensors.
[[nodiscard]] std::string debug_keys(const Checkpoint& now, std::span<const std::string> origins);

/// All tensors of all parts; Errc::duplicate_key when a name is in two of them, Errc::invalid_argument when
/// the parts do not have one layout. What is tied or quantized stays so.
[[nodiscard]] Checkpoint merge(std::span<const Checkpoint> parts);

/// Other metadata, or none. What Ballast says of the tensors there (keys that begin with "ballast.": what is
/// quantized, whose layout it is) stays: Errc::invalid_argument when `metadata` says something else.
[[nodiscard]] Checkpoint with_metadata(const Checkpoint& in, const std::optional<Metadata>& metadata);

/// Every tensor's bytes in one piece of memory, brought there by all threads at once, and what was still to
/// be computed is computed: nothing depends on a file any more, but `tree`. Tied tensors stay tied.
/// Errc::file_changed when a file is not as it was when it was opened, unsupported for a tensor on another
/// device.
[[nodiscard]] Checkpoint in_memory(const Checkpoint& in);

/// 8-bit weights with scales that the file's metadata speaks of (quantized.h).
enum class OnQuantized : std::uint8_t {
  dequantize,  ///< into the dtype they had, when they are read
  keep,        ///< integers and scales as they are
};

/// All steps there are, in the order in which they are taken. LoadOptions, ConvertOptions and VerifyOptions
/// have the same fields, the command and the Python package the same words: docs/options.md.
struct Steps {
  OnQuantized quantized = OnQuantized::dequantize;
  std::optional<std::string> root = {};  ///< dotted path of the state dict; "" takes everything; absent: it
                                         ///< is found by itself (find_root())
  /// {{pattern, to}, …}: as rename()
  std::vector<RenameRule> rename = {};
  std::vector<rules::Rule> rules = {};    ///< after rename
  bool strip_prefixes = false;            ///< strip_common_prefixes()
  std::vector<std::string> include = {};  ///< patterns on names, after renaming
  std::vector<std::string> exclude = {};
  std::vector<std::string> reindex = {};  ///< patterns on prefixes ("layers\\."): the numbers behind them
                                          ///< become 0, 1, 2, …
  std::vector<std::string> keep_positions = {};  ///< patterns on prefixes: but not the numbers behind these
  Precision dtype = Precision::keep;
  std::vector<std::string> keep_dtype =
      {};  ///< patterns on names: tensors that 16 bits and fewer leave wider
  /// Norms with statistics (running_mean and running_var beside each other, of one shape [n]) as a whole are
  /// left so, too.
  bool keep_statistics = true;
};

/// With nothing counted yet.
[[nodiscard]] std::shared_ptr<CastCount> new_count();

/// What the steps made of a checkpoint.
struct Stepped {
  Checkpoint checkpoint;               ///< the tensors, as the steps left them
  std::vector<std::string> origins;    ///< for each tensor the key or keys ("a + b") it comes from
  std::string root;                    ///< where the state dict was found by itself
  std::vector<std::string> unmatched;  ///< patterns that matched nothing
  Checkpoint taken = {};               ///< what lies under the root, before all other steps
  std::uint64_t cast = 0;              ///< tensors that have another dtype now
  /// What casts did to values; counted as they are read, so complete when all were.
  std::shared_ptr<CastCount> count = new_count();
};

/// Nothing is read yet but names. Errc::not_found when no tensor is left of some, or `root` is not there, and
/// what the steps throw by themselves.
[[nodiscard]] Stepped apply_steps(Checkpoint in, const Steps& steps);

/// Those of the steps that `other` needs to be compared with what they make of a checkpoint: root, include
/// and exclude, which say what is meant, not how it was made. Of an `other` that is a state dict as a whole
/// and has no such root, everything (root "").
[[nodiscard]] Steps steps_of_other(const Steps& steps, const Checkpoint& other);

}  // namespace ballast

#pragma GCC visibility pop
