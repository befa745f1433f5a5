// SPDX-License-Identifier: Apache-2.0
// The pass over values that stats() and summary() share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ballast/stats.h"
#include "base/shared_progress.h"
#include "tensor/buckets.h"
#include "tensor/stats_kernels.h"

namespace ballast {

/// Values are looked at in blocks, which make up pieces, one thread's share each; blocks and pieces begin
/// where these sizes say, whoever reads them, so that the same bits come out.
inline constexpr std::uint64_t kStatsBlock = std::uint64_t{1} << 11U;
/// A multiple of 8, so that pieces of values below a byte begin on bytes.
inline constexpr std::uint64_t kStatsPiece = std::uint64_t{1} << 20U;

/// Values are brought to double; otherwise to float.
[[nodiscard]] bool stats_need_double(DType stored);

/// Values [first, first + count) in the row-major order of `tensor`; `first` is a multiple of 8. `buckets`,
/// when given, counts them too.
[[nodiscard]] StatsPart look_at_values(const Tensor& tensor, std::uint64_t first, std::uint64_t count,
                                       BucketCounter* buckets = nullptr);

[[nodiscard]] TensorStats stats_of(const StatsPart& part);

/// stats() of each, and, where `codes` has a place for each, what a BucketCounter finds.
[[nodiscard]] std::vector<TensorStats> stats_pass(std::span<const Tensor> tensors, const Progress& progress,
                                                  std::span<CodeCounts> codes);

/// summary() of one tensor, a part at a time.
class SummaryPass {
 public:
  explicit SummaryPass(const Tensor& tensor);

  [[nodiscard]] std::uint64_t values() const { return values_; }

  /// Whole pieces, until none begins before value number `end`.
  void run(std::uint64_t end, SharedProgress& progress);
  [[nodiscard]] Summary finish() const;

 private:
  const Tensor& tensor_;
  DType stored_;
  std::uint64_t values_;
  std::vector<StatsPart> parts_;
  CodeCounts codes_;
};

}  // namespace ballast
