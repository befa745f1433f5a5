// SPDX-License-Identifier: Apache-2.0
// Work on several threads: parallel_for splits [0, count) into pieces and runs them on the calling thread and
// the pool's. The first exception stops the handing out of pieces and is rethrown to the caller.
#pragma once

#include <cstdint>
#include <functional>

#include "ballast/runtime.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Calls work(begin, end) for disjoint pieces that cover [0, count), each of at least `grain` except the
/// last. Runs inline when there is one piece, one thread, or when called from inside a piece.
void parallel_for(std::uint64_t count, std::uint64_t grain,
                  const std::function<void(std::uint64_t, std::uint64_t)>& work);

/// The same for pieces that wait for a disk or a server more than they compute: on `readers` threads, however
/// few cores there are. Each piece is one of [0, count).
void parallel_read(std::uint64_t count, int readers, const std::function<void(std::uint64_t)>& work);

}  // namespace ballast

#pragma GCC visibility pop
