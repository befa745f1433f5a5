// SPDX-License-Identifier: Apache-2.0
// Numbers of all tensors of a file, which take a reading of everything: what the treemap is coloured by, and
// what is odd.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ballast/stats.h"

namespace tool::view {

struct Call;

/// By file, for as long as the command runs.
class Measures {
 public:
  using Stats = std::vector<ballast::TensorStats>;  ///< by tensor

  [[nodiscard]] std::shared_ptr<const Stats> find(std::size_t file) const {
    const std::lock_guard lock(mutex_);
    const auto found = done_.find(file);
    return found == done_.end() ? nullptr : found->second;
  }

  void keep(std::size_t file, std::shared_ptr<const Stats> stats) {
    const std::lock_guard lock(mutex_);
    done_[file] = std::move(stats);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::size_t, std::shared_ptr<const Stats>> done_;
};

/// "std", "absmax" or "change" of every tensor of the file that is asked about, NaN where it has none; none
/// at all for "none". Refused (409) before they are known.
[[nodiscard]] std::vector<float> measured_by(const Call& call, const std::string& what);

}  // namespace tool::view
