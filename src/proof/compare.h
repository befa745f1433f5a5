// SPDX-License-Identifier: Apache-2.0
// Pairs of tensors of one shape, compared in pieces that threads share.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ballast/diff.h"
#include "base/shared_progress.h"

namespace ballast {

using TensorPair = std::pair<Tensor, Tensor>;

/// For each pair of one dtype whether the bits are the same; stops at the first difference of a pair.
[[nodiscard]] std::vector<char> same_bits(std::span<const TensorPair> pairs, SharedProgress& progress);

/// Whether the values of the two can be compared at all.
[[nodiscard]] bool comparable(DType a, DType b);

[[nodiscard]] std::vector<Distance> distances(std::span<const TensorPair> pairs, const DiffOptions& options,
                                              SharedProgress& progress);

}  // namespace ballast
