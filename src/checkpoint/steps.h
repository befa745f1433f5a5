// SPDX-License-Identifier: Apache-2.0
// What the steps share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ballast/steps.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Everything of `in` but its tensors.
[[nodiscard]] Checkpoint without_tensors(const Checkpoint& in);

/// The tensors of `in` under `names`, one for each. Errc::duplicate_key, naming the two old keys, when two
/// are the same.
[[nodiscard]] Checkpoint with_names(const Checkpoint& in, const std::vector<std::string>& names);

/// Where a path's segment is a number, and what stands before it.
struct NumberedSegment {
  std::string_view prefix;  ///< "layers."
  std::string_view number;
};

[[nodiscard]] std::vector<NumberedSegment> numbered_segments(std::string_view key);

/// The tensors whose position passes.
[[nodiscard]] Checkpoint only(const Checkpoint& in, const std::vector<bool>& passes);

/// cast() for the tensors whose position `wanted` says yes to.
[[nodiscard]] Checkpoint cast_where(const Checkpoint& in, DType dtype,
                                    const std::function<bool(std::size_t)>& wanted,
                                    const std::shared_ptr<CastCount>& count);

/// Errc::invalid_argument for keep and as_model, which name no dtype, and Errc::bad_dtype for one that is not
/// floating-point.
[[nodiscard]] DType target_dtype(Precision precision);

/// Whether a cast is one that norms with statistics, and what a user asked to keep, are spared.
[[nodiscard]] bool is_narrower(DType from, DType to);

/// Options that have the fields of Steps.
template <class Options>
[[nodiscard]] Steps steps_of(const Options& options) {
  return {.root = options.root,
          .rename = options.rename,
          .rules = options.rules,
          .strip_prefixes = options.strip_prefixes,
          .include = options.include,
          .exclude = options.exclude,
          .reindex = options.reindex,
          .keep_positions = options.keep_positions,
          .dtype = options.dtype,
          .keep_dtype = options.keep_dtype,
          .keep_statistics = options.keep_statistics};
}

}  // namespace ballast

#pragma GCC visibility pop
