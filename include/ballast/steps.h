// SPDX-License-Identifier: Apache-2.0
// Steps between opening a file and using it: functions from Checkpoint to Checkpoint. All but in_memory()
// move names and views, never data; what must be computed (a cast, a concatenation) is computed when somebody
// reads it.
// load() and the tool's convert are made of these.
//
// Patterns are RE2's, searched anywhere in the key unless anchored; they take linear time, whatever they are.
// In replacements $1, ${1} and ${name} stand for groups, $$ for a dollar sign. A pattern or replacement that
// makes no sense is Errc::invalid_argument.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ballast/checkpoint.h"

namespace ballast {

struct RenameRule {
  std::string pattern;
  std::string replacement;
};

struct KeyChange {
  std::string from;
  std::string to;
  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};

struct Renamed {
  Checkpoint checkpoint;           ///< same tensors, same order
  std::vector<KeyChange> changed;  ///< only those whose name changed
  std::vector<std::string>
      unmatched;  ///< patterns of rules that matched nothing; also said in the checkpoint's notes
};

/// All rules in order, each on the result of the one before, every match in the key. Errc::duplicate_key when
/// two keys land on one name.
[[nodiscard]] Renamed rename(const Checkpoint& in, const std::vector<RenameRule>& rules);

/// `module.` (DataParallel) and `_orig_mod.` (torch.compile) in front of all keys, in any order and number.
[[nodiscard]] Renamed strip_common_prefixes(const Checkpoint& in);

/// The numbers seen after each prefix, compacted in order: layers.0, layers.2, layers.4 → 0, 1, 2. Blind to
/// any model; only where the prefix
/// ("encoder.layers.") contains a match of one of `prefixes`, everywhere when there are none.
[[nodiscard]] Renamed reindex(const Checkpoint& in, const std::vector<std::string>& prefixes = {});

/// Keys that match one of `include` (all, when empty) and none of `exclude`.
[[nodiscard]] Checkpoint filter(const Checkpoint& in, const std::vector<std::string>& include,
                                const std::vector<std::string>& exclude = {});

enum class Precision : std::uint8_t {
  keep,
  full,  ///< F32
  half,  ///< F16
  bf16,
  f64,
  as_model,  ///< what the model's tensor has; only for load()
};

/// Floating-point tensors only, and only when they are read. Tied tensors stay tied.
[[nodiscard]] Checkpoint cast(const Checkpoint& in, Precision precision);

struct CastOptions {
  std::vector<std::string> except = {};   ///< patterns: tensors that keep their dtype
  std::shared_ptr<CastCount> count = {};  ///< grows as values are read
};

/// The same to any floating dtype.
[[nodiscard]] Checkpoint cast(const Checkpoint& in, DType dtype, const CastOptions& options = {});

/// For each tensor, sorted by its key: the key before (`origins`, one for each tensor) and the key now, its
/// shape and dtype; a few lines each.
[[nodiscard]] std::string debug_keys(const Checkpoint& now, std::span<const std::string> origins);

/// All tensors of all parts; Errc::duplicate_key when a name is in two of them, Errc::invalid_argument when
/// the parts do not have one layout. What is tied or quantized stays so.
[[nodiscard]] Checkpoint merge(std::span<const Checkpoint> parts);

/// Other metadata, or none. What Ballast says of the tensors there (keys that begin with "ballast.": what is
/// quantized, whose layout it is) stays: Errc::invalid_argument when `metadata` says something else.
[[nodiscard]] Checkpoint with_metadata(const Checkpoint& in, const std::optional<Metadata>& metadata);

/// Every tensor's bytes in one piece of memory, brought there by all threads at once, and what was still to
/// be computed is computed: nothing depends on a file any more, but `tree`. Tied tensors stay tied.
/// Errc::file_changed when a file is not as it was when it was opened.
[[nodiscard]] Checkpoint in_memory(const Checkpoint& in);

// Rules: renames and changes of tensors, from C++ or from a file that the tool reads too.
namespace rules {

struct Rename {
  std::string match;
  std::string to;
};

struct Drop {
  std::string match;
};

/// A second name for the same tensor; the two stay tied.
struct Alias {
  std::string match;
  std::string to;
};

struct Transpose {
  std::int64_t a = 0;
  std::int64_t b = 1;
};

struct Permute {
  std::vector<std::int64_t> order;
};

struct Reshape {
  std::vector<std::int64_t> shape;
};

struct Narrow {  ///< start:stop:step of one dimension
  std::int64_t dim = 0;
  Slice slice = {};
};

struct Cast {
  DType dtype = DType::f32;
};

using Operation = std::variant<Transpose, Permute, Reshape, Narrow, Cast>;

/// Operations in order, then the new name, if there is one.
struct Change {
  std::string match;
  std::vector<Operation> operations;
  std::string to = {};
};

/// One tensor into several along `dim`: of these sizes, or equal ones when there are none.
struct Split {
  std::string match;
  std::vector<std::string> to;
  std::int64_t dim = 0;
  std::vector<std::int64_t> sizes = {};
};

/// Several tensors into one: the one that matches and `others`, whose names are made from its groups.
struct Join {
  std::string match;
  std::vector<std::string> others;
  std::string to;
  std::int64_t dim = 0;
  bool stack = false;  ///< along a new dimension
};

using Rule = std::variant<Rename, Drop, Alias, Change, Split, Join>;

[[nodiscard]] std::vector<Rule> from_renames(const std::vector<RenameRule>& renames);

/// The rules of a file (docs/rules.md): {"rules": [{"match": "(.*)\\.w$", "transpose": [0, 1], "to":
/// "$1.weight"}, …]}.
[[nodiscard]] std::vector<Rule> read(const std::string& path);
[[nodiscard]] std::vector<Rule> parse(std::string_view json, const std::string& where = "rules");

struct Applied {
  Checkpoint checkpoint;
  std::vector<std::string> origins;    ///< for each tensor the key or keys ("a + b") it comes from
  std::vector<std::string> unmatched;  ///< patterns that matched nothing
};

/// `count` grows as values that a rule casts are read.
[[nodiscard]] Applied apply(const Checkpoint& in, const std::vector<Rule>& rules,
                            const std::shared_ptr<CastCount>& count = {});

}  // namespace rules
}  // namespace ballast
