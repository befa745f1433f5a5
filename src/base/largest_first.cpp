// SPDX-License-Identifier: Apache-2.0
#include "base/largest_first.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "base/thread_pool.h"

namespace ballast {

void largest_first(std::span<const std::uint64_t> sizes, const std::function<void(std::size_t)>& work) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::atomic<std::size_t> next{0};
  parallel_for(static_cast<std::uint64_t>(thread_count()), 1, [&](std::uint64_t, std::uint64_t) {
    try {
      for (std::size_t i = next++; i < order.size(); i = next++) work(order[i]);
    } catch (...) {
      next = order.size();
      throw;
    }
  });
}

}  // namespace ballast
