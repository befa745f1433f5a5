// SPDX-License-Identifier: Apache-2.0
// What the values of a tensor look like: how many are not finite or zero, their range, mean and spread. Read
// piece by piece on several threads, so that a tensor of any size needs a few megabytes.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ballast/runtime.h"
#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

struct TensorStats {
  std::uint64_t count = 0;  ///< values looked at; a complex element is two
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;    ///< of either sign
  std::uint64_t zeros = 0;  ///< of either sign
  // Of the finite values; NaN when there is none. 64-bit integers beyond 2^53 are rounded.
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  double mean = std::numeric_limits<double>::quiet_NaN();
  double std = std::numeric_limits<double>::quiet_NaN();  ///< of the population, like numpy's

  [[nodiscard]] std::uint64_t finite() const noexcept { return count - nan - inf; }

  [[nodiscard]] double absmax() const noexcept { return -min > max ? -min : max; }

  [[nodiscard]] bool all_zero() const noexcept { return count > 0 && zeros == count; }
};

/// Quantized tensors: their integers as they are stored. Opaque ones and integers packed below a byte: their
/// bytes. The same numbers come out however many threads there are. Throws when the tensor has no data.
[[nodiscard]] TensorStats stats(const Tensor& tensor);

/// One result a tensor. Large tensors are shared out among the threads, and so are many small ones.
/// `progress` is called with bytes done and in all, from any of the threads; throwing from it stops the work.
[[nodiscard]] std::vector<TensorStats> stats(std::span<const Tensor> tensors, const Progress& progress = {});

/// How many values lie in each of `bins` equal parts of [low, high]; `high` itself is in the last. What lies
/// outside, and NaN, is not counted. Reads the tensor once more, on several threads.
[[nodiscard]] std::vector<std::uint64_t> histogram(const Tensor& tensor, double low, double high,
                                                   std::size_t bins);

/// nan + inf of stats(), without the rest of the work.
[[nodiscard]] std::uint64_t count_not_finite(const Tensor& tensor);

}  // namespace ballast

#pragma GCC visibility pop
