// SPDX-License-Identifier: Apache-2.0
// The exact pass: one reading of all values of a tensor, after which everything about it is exact.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "ballast/stats.h"

namespace tool::view {

struct Call;

/// What passes have found: the last ones, up to so many bytes, for as long as the command runs.
class ExactPasses {
 public:
  static constexpr std::size_t kMost = 256;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20U;

  struct Pass {
    std::uint64_t job = 0;
    std::string summary;  ///< as it is answered
    ballast::Pyramid pyramid;
    std::uint64_t bytes = 0;  ///< of the pyramid, about
  };

  /// 16 bytes for each 64 x 64 elements, and two numbers for each row and column.
  [[nodiscard]] static std::uint64_t bytes_of(const ballast::Plane& plane) {
    const auto rows = static_cast<std::uint64_t>(plane.rows());
    const auto cols = static_cast<std::uint64_t>(plane.cols());
    return (rows / 64 + 1) * (cols / 64 + 1) * 16 + (rows + cols) * 2 * sizeof(float);
  }

  [[nodiscard]] std::shared_ptr<const Pass> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = done_.find(key);
    return found == done_.end() ? nullptr : found->second;
  }

  void keep(const std::string& key, std::shared_ptr<const Pass> pass) {
    const std::lock_guard lock(mutex_);
    if (!done_.contains(key)) order_.push_back(key);
    done_[key] = std::move(pass);
    while (order_.size() > kMost || (order_.size() > kLast && held() > kMostBytes)) {
      done_.erase(order_.front());
      order_.pop_front();
    }
  }

 private:
  static constexpr std::size_t kLast = 2;  // the plane and the tensor of the last pass stay, however large

  [[nodiscard]] std::uint64_t held() const {
    std::set<const Pass*> seen;  // one pass may have two keys
    std::uint64_t bytes = 0;
    for (const auto& [key, pass] : done_) {
      if (seen.insert(pass.get()).second) bytes += pass->bytes + pass->summary.size();
    }
    return bytes;
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Pass>> done_;
  std::deque<std::string> order_;
};

/// Of this plane of the tensor that is asked about; null where no pass over it is done.
[[nodiscard]] std::shared_ptr<const ballast::Pyramid> exact_pyramid(const Call& call,
                                                                    const ballast::Plane& plane);

}  // namespace tool::view
