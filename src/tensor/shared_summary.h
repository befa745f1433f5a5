// SPDX-License-Identifier: Apache-2.0
// summary() of a tensor whose values somebody else reads: the same bits, without a reading of its own.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "tensor/stats_pass.h"

namespace ballast {

class SharedSummary {
 public:
  explicit SharedSummary(const Tensor& tensor);

  [[nodiscard]] std::uint64_t values() const { return values_; }

  [[nodiscard]] DType stored() const { return stored_; }

  /// Values [begin, end) of the row-major order come next, in any order and from any thread.
  void expect(std::uint64_t begin, std::uint64_t end);

  /// How many values from `first` on must lie at hand where `count` are added: blocks are looked at by those
  /// who bring their beginning, and end where they do.
  [[nodiscard]] std::uint64_t reach(std::uint64_t first, std::uint64_t count) const;

  /// Values [first, first + count), as they are stored and as numbers, with reach() of them at hand.
  template <class T>
  void add(const std::byte* raw, const T* numbers, std::uint64_t first, std::uint64_t count,
           BucketCounter& counter);

  /// All that were expected came.
  void settle();

  /// A thread's own, for as long as it adds.
  [[nodiscard]] BucketCounter take_counter();
  void give_back(BucketCounter counter);

  [[nodiscard]] Summary finish();

 private:
  DType stored_;
  std::uint64_t values_;
  std::uint64_t first_block_ = 0;
  std::vector<StatsPart> blocks_;  // of what is expected
  std::uint64_t settled_ = 0;      // blocks
  StatsPart piece_;                // the one that is not whole yet
  StatsPart whole_;
  std::mutex mutex_;
  std::vector<BucketCounter> counters_;
};

}  // namespace ballast
