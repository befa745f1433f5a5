// SPDX-License-Identifier: Apache-2.0
// Threads for operations. They are oneDNN's own team (OpenMP's), so that loops of ours and of oneDNN follow
// each other without two teams fighting for the cores.
#pragma once

#include <cstdint>
#include <functional>

namespace ballast::ops {

using Piece = std::function<void(std::int64_t begin, std::int64_t end)>;

/// Calls work(begin, end) for disjoint pieces that cover [0, count), each of at least `grain` except the
/// last; inline when there is one piece, one thread, or when called from inside a piece. The first exception
/// is rethrown.
void parallel(std::int64_t count, std::int64_t grain, const Piece& work);

/// How many threads the next parallel work may use: 1 inside a piece.
[[nodiscard]] int usable_threads() noexcept;

/// While it lives, oneDNN works with usable_threads() threads for calls from this thread.
class ThreadScope {
 public:
  ThreadScope() noexcept;
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;
  ~ThreadScope();

 private:
  int saved_;
};

}  // namespace ballast::ops
