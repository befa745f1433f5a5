// SPDX-License-Identifier: Apache-2.0
// Progress of work that several threads share: one call at a time, with the sum of what all have done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "ballast/runtime.h"

namespace ballast {

class SharedProgress {
 public:
  SharedProgress(const Progress& report, std::uint64_t total) : report_(report), total_(total) {}

  void add(std::uint64_t bytes) {
    if (!report_) return;
    const std::lock_guard lock(mutex_);
    done_ = std::min(done_ + bytes, total_);
    report_(done_, total_);
  }

 private:
  const Progress& report_;
  std::uint64_t total_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

}  // namespace ballast
