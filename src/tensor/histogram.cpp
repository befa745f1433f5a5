// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <mutex>

#include "ballast/stats.h"
#include "base/fail.h"
#include "base/thread_pool.h"
#include "tensor/elements.h"

namespace ballast {

std::vector<std::uint64_t> histogram(const Tensor& tensor, double low, double high, std::size_t bins) {
  if (bins == 0 || !(low <= high) || !std::isfinite(high - low))
    fail(Errc::invalid_argument, "histogram", "{} bins from {} to {}", bins, low, high);
  constexpr std::uint64_t kBlock = 1U << 13U;  // a multiple of 8: blocks begin on bytes
  const std::uint64_t total = values_in(tensor);
  const double scale = high > low ? static_cast<double>(bins) / (high - low) : 0;
  std::vector<std::uint64_t> counts(bins, 0);
  if (total == 0) return counts;
  std::mutex mutex;
  parallel_for((total - 1) / kBlock + 1, 8, [&](std::uint64_t begin, std::uint64_t end) {
    ElementReader reader(tensor);
    std::vector<double> values(kBlock);
    std::vector<std::uint64_t> local(bins, 0);
    for (std::uint64_t block = begin; block < end; ++block) {
      const std::uint64_t count = std::min(kBlock, total - block * kBlock);
      const auto here = std::span(values).first(static_cast<std::size_t>(count));
      reader.read(block * kBlock, count);
      reader.cast(0, here);
      for (const double value : here) {
        if (!(value >= low && value <= high)) continue;  // NaN too
        ++local[std::min(bins - 1, static_cast<std::size_t>((value - low) * scale))];
      }
    }
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < bins; ++i) counts[i] += local[i];
  });
  return counts;
}

}  // namespace ballast
