// SPDX-License-Identifier: Apache-2.0
// Many things, each in pieces, shared out among the threads together: a large one does not keep the others
// waiting, nor do thousands of small ones cost a start each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace ballast {

/// The pieces of all things, numbered through: thing t has the pieces [first(t), end(t)).
class Pieces {
 public:
  /// Thing t has size_of(t) parts, at most `most` of them a piece; one of size 0 has no piece.
  template <class Size>
  Pieces(std::size_t things, std::uint64_t most, Size&& size_of) {
    starts_.reserve(things + 1);
    for (std::size_t i = 0; i < things; ++i)
      starts_.push_back(starts_.back() + (size_of(i) + most - 1) / most);
  }

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(starts_.back()); }

  [[nodiscard]] std::size_t first(std::size_t thing) const {
    return static_cast<std::size_t>(starts_[thing]);
  }

  [[nodiscard]] std::size_t end(std::size_t thing) const { return first(thing + 1); }

  /// work(thing, first and end of its pieces, first of them in all), on several threads: neighbouring pieces
  /// of one thing that one thread has together.
  template <class Work>
  void for_each_run(Work&& work) const {
    parallel_for(starts_.back(), 1, [&](std::uint64_t begin, std::uint64_t end) {
      // upper_bound, not lower_bound: things of size 0 have no pieces.
      const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
      auto owner = static_cast<std::size_t>(after - starts_.begin()) - 1;
      for (std::uint64_t piece = begin; piece < end;) {
        while (starts_[owner + 1] <= piece) ++owner;
        const std::uint64_t last = std::min(end, starts_[owner + 1]);
        work(owner, piece - starts_[owner], last - starts_[owner], static_cast<std::size_t>(piece));
        piece = last;
      }
    });
  }

  /// work(thing, piece of the thing, piece of all), on several threads.
  template <class Work>
  void for_each(Work&& work) const {
    for_each_run([&](std::size_t owner, std::uint64_t first, std::uint64_t end, std::size_t overall) {
      for (std::uint64_t piece = first; piece < end; ++piece) work(owner, piece, overall++);
    });
  }

 private:
  std::vector<std::uint64_t> starts_ = {0};
};

}  // namespace ballast
