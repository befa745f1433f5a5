// SPDX-License-Identifier: Apache-2.0
// Values counted by their leading bits, in the order of the values: what quantiles and histograms are made
// of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ballast/stats.h"

namespace ballast {

/// Which bits: a code of 16 bits is taken as it is; other floats of at most 32 bits by the upper half of the
/// float they are; the rest by sign, exponent and 7 bits of the fraction of the double they are.
enum class BucketKind : std::uint8_t { code16, top_of_float, top_of_double };

[[nodiscard]] BucketKind bucket_kind(DType stored) noexcept;

/// Codes that occur and how often, by code.
using CodeCounts = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

/// For one thread. Few values are collected and sorted; many are counted in tables.
class BucketCounter {
 public:
  BucketCounter(DType stored, std::uint64_t expected);

  /// `raw`: the values as they are stored; `values`: the same as numbers.
  void add(const std::byte* raw, const float* values, std::size_t count);
  void add(const std::byte* raw, const double* values, std::size_t count);

  [[nodiscard]] CodeCounts finish();

 private:
  /// Side by side, so that equal neighbours do not wait for each other's addition.
  static constexpr std::size_t kTables = 4;

  template <class CodeAt>
  void count_codes(std::size_t count, CodeAt&& code_at);
  void spill();

  BucketKind kind_;
  std::size_t size_;
  std::vector<std::uint32_t> few_;
  std::shared_ptr<Storage> memory_;
  std::uint32_t* tables_ = nullptr;
  std::uint64_t in_tables_ = 0;
  CodeCounts spilled_;
};

[[nodiscard]] CodeCounts merged(const CodeCounts& a, const CodeCounts& b);

/// The finite ones, in order; the outermost end at min and max.
[[nodiscard]] std::vector<Bucket> buckets_of(DType stored, const CodeCounts& codes, const TensorStats& stats);

}  // namespace ballast
