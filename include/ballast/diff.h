// SPDX-License-Identifier: Apache-2.0
// Two checkpoints, compared: names, shapes, dtypes and every value, whatever formats they come from. Streamed
// in blocks on several threads: equal bytes at the speed of memory, and in a few megabytes of it. Part of
// ballast::import.
//
// Throws: what diff() says. Owns: results are values. Threads: every function may be called from several at
// once; diff() works on all threads of runtime.h, with one result however many there are. Costs: every byte
// of both is read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/runtime.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What became of a tensor.
enum class Change : std::uint8_t {
  equal,   ///< same dtype, same shape, same bits
  within,  ///< differs, but no value by more than the tolerance
  values,  ///< same shape, and values (or the bits that spell them) differ
  dtype,   ///< same shape, another dtype; values were compared as far as the two can be
  shape,
  renamed,  ///< same bits under another name
  only_a,
  only_b,
  layout,  ///< same bits of a matrix or more, which the two say to be laid out differently: other numbers
};

/// "equal", "within-tolerance", "values", "dtype", "shape", "renamed", "only-a", "only-b", "layout":
/// constants.
[[nodiscard]] std::string_view name(Change change) noexcept;

/// How far the values of two tensors are apart. NaN equals NaN; NaN and a number, or an infinity and a
/// number, are infinitely far apart.
struct Distance {
  std::uint64_t count = 0;                    ///< values compared; a complex element is two
  std::uint64_t differing = 0;                ///< that are not the same value
  std::uint64_t outside = 0;                  ///< that differ by more than the tolerance
  std::uint64_t first = 0;                    ///< place of the first that differs, when one does
  double max_abs = 0;                         ///< largest |a - b|
  double max_rel = 0;                         ///< largest |a - b| / max(|a|, |b|)
  std::optional<std::uint64_t> max_ulp = {};  ///< of finite pairs of one floating-point dtype
  /// Of the finite pairs; none when one side is all zero, or of lengths whose squares F64 cannot hold with
  /// all their bits (below 1e-135 or above 1e154).
  std::optional<double> cosine = {};
  /// |a - b| / |a| as vectors of the finite pairs (Euclidean lengths); none when A is so.
  std::optional<double> rel_l2 = {};
  double l2_a = 0;     ///< |a|, |b| and |a - b| as vectors of the finite pairs: squares of several tensors
  double l2_b = 0;     ///< add up to those of a layer
  double l2_diff = 0;  ///< the one that rel_l2 is a part of
  std::optional<std::uint64_t> nan_a = {};  ///< place of the first NaN of A, row by row
  std::optional<std::uint64_t> nan_b = {};  ///< and of B
};

/// One tensor of either side, or of both.
struct TensorDiff {
  Change change = Change::equal;  ///< the strongest that holds
  std::string name;               ///< in A; in B when it is only there
  std::string other = {};         ///< renamed: the name in B
  DType dtype_a = DType::f32;     ///< what it is in A
  DType dtype_b = DType::f32;     ///< and in B
  Shape shape_a = {};             ///< its shape in A
  Shape shape_b = {};             ///< and in B
  Distance distance = {};         ///< of Change::within, values and dtype; with DiffOptions::lengths of equal
};

/// What diff() counts as a difference.
struct DiffOptions {
  /// Values may differ by tolerance + relative * max(|a|, |b|); dtypes may differ then, too. Both 0: the bits
  /// must be the same.
  double tolerance = 0;
  double relative = 0;       ///< of the larger magnitude of the two
  bool find_renamed = true;  ///< look for tensors of one side under other names on the other
  bool lengths = false;      ///< Distance::l2_a of equal tensors, too, which reads their values
  Progress progress = {};
};

/// What diff() found.
struct DiffReport {
  std::vector<TensorDiff> tensors;  ///< in A's order, then those only in B

  /// How many tensors have this change.
  [[nodiscard]] std::size_t count(Change change) const noexcept;
  /// Nothing but equal and within.
  [[nodiscard]] bool same() const noexcept;
};

/// Every tensor of both, by name: shapes, dtypes, bits, and where bits differ the values. Quantized weights
/// are compared as the values they stand for. Reads all bytes once, on all threads, in a few megabytes of
/// memory. Errc::file_changed when a file was written to since it was opened, invalid_argument for a negative
/// or NaN tolerance, not_representable for a tensor without data, unsupported for one on another device; for
/// damaged marks in the metadata (Metadata) bad_json, bad_utf8, duplicate_key, too_many, bad_dtype,
/// unsupported.
[[nodiscard]] DiffReport diff(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options = {});

}  // namespace ballast

#pragma GCC visibility pop
