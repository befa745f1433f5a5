// SPDX-License-Identifier: Apache-2.0
// The exact pass: one reading of all values of a tensor, after which everything about it is exact.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "ballast/stats.h"

namespace tool::view {

struct Call;

/// What passes have found: the last ones, for as long as the command runs.
class ExactPasses {
 public:
  static constexpr std::size_t kMost = 256;

  struct Pass {
    std::uint64_t job = 0;
    std::string summary;  ///< as it is answered
    ballast::Pyramid pyramid;
  };

  [[nodiscard]] std::shared_ptr<const Pass> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = done_.find(key);
    return found == done_.end() ? nullptr : found->second;
  }

  void keep(const std::string& key, std::shared_ptr<const Pass> pass) {
    const std::lock_guard lock(mutex_);
    if (!done_.contains(key)) order_.push_back(key);
    done_[key] = std::move(pass);
    if (order_.size() <= kMost) return;
    done_.erase(order_.front());
    order_.pop_front();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Pass>> done_;
  std::deque<std::string> order_;
};

/// Of this plane of the tensor that is asked about; null where no pass over it is done.
[[nodiscard]] std::shared_ptr<const ballast::Pyramid> exact_pyramid(const Call& call,
                                                                    const ballast::Plane& plane);

}  // namespace tool::view
