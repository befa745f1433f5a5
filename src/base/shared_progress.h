// SPDX-License-Identifier: Apache-2.0
// Progress of work that several threads share: one call at a time, with the sum of what all have done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>

namespace ballast {

class SharedProgress {
 public:
  using Report = std::function<void(std::uint64_t done, std::uint64_t total)>;

  SharedProgress(const Report& report, std::uint64_t total) : report_(report), total_(total) {}

  void add(std::uint64_t bytes) {
    if (!report_) return;
    const std::lock_guard lock(mutex_);
    done_ = std::min(done_ + bytes, total_);
    report_(done_, total_);
  }

 private:
  const Report& report_;
  std::uint64_t total_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

}  // namespace ballast
