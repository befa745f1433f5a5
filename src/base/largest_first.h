// SPDX-License-Identifier: Apache-2.0
// Work on items of very different sizes: threads take the next one as they get free, the largest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// work(i) once for each of `sizes`, on several threads; the first exception stops the rest and is rethrown.
void largest_first(std::span<const std::uint64_t> sizes, const std::function<void(std::size_t)>& work);

}  // namespace ballast

#pragma GCC visibility pop
