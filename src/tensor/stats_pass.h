// SPDX-License-Identifier: Apache-2.0
// The pass over values that stats() and summary() share.
#pragma once

#include <cstdint>
#include <span>

#include "ballast/stats.h"
#include "tensor/buckets.h"
#include "tensor/stats_kernels.h"

namespace ballast {

/// Values [first, first + count) in the row-major order of `tensor`; `first` is a multiple of 8. `buckets`,
/// when given, counts them too.
[[nodiscard]] StatsPart look_at_values(const Tensor& tensor, std::uint64_t first, std::uint64_t count,
                                       BucketCounter* buckets = nullptr);

[[nodiscard]] TensorStats stats_of(const StatsPart& part);

/// stats() of each, and, where `codes` has a place for each, what a BucketCounter finds.
[[nodiscard]] std::vector<TensorStats> stats_pass(std::span<const Tensor> tensors, const Progress& progress,
                                                  std::span<CodeCounts> codes);

}  // namespace ballast
