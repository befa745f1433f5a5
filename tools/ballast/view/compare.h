// SPDX-License-Identifier: Apache-2.0
// Two files, compared as `ballast diff` compares them: all of their values, or, where that takes long, first
// the same pages of both.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "ballast/diff.h"
#include "view/document.h"

namespace tool::view {

struct Compared {
  ballast::Checkpoint a;  ///< what was compared of each: its state dict
  ballast::Checkpoint b;
  ballast::DiffReport report;
  std::set<std::string, std::less<>> sampled =
      {};  ///< names of A, or of B alone: some of their values were compared

  [[nodiscard]] bool exact() const { return sampled.empty(); }
};

/// By the numbers of the two files, when a job is done: from a sample, and, from then on better, from
/// everything.
class Comparison {
 public:
  using Files = std::pair<std::size_t, std::size_t>;

  [[nodiscard]] std::shared_ptr<const Compared> find(Files files) const {
    const std::lock_guard lock(mutex_);
    const auto found = done_.find(files);
    return found == done_.end() ? nullptr : found->second;
  }

  void keep(Files files, std::shared_ptr<const Compared> compared) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Compared>& kept = done_[files];
    if (kept == nullptr || compared->exact()) kept = std::move(compared);
  }

 private:
  mutable std::mutex mutex_;
  std::map<Files, std::shared_ptr<const Compared>> done_;
};

/// `exact`: every value. Otherwise of tensors of more than a few pages some pages alone, the same of both and
/// always the same ones, where the files are large, and where pages can be had.
[[nodiscard]] std::shared_ptr<const Compared> compare(const Document& a, const Document& b, bool exact,
                                                      const ballast::Progress& progress);

/// What has to be read for it.
[[nodiscard]] std::uint64_t bytes_to_compare(const Compared& compared);

}  // namespace tool::view
