// SPDX-License-Identifier: Apache-2.0
// How work is done: how the bytes of a file come into memory, on how many threads, and how far it is.
//
// Throws: Errc::invalid_argument for what makes no sense. Owns: nothing; the number of threads is one for the
// process. Threads: every function may be called from several at once. Costs: none; threads are started when
// there is work for them, and stay.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/detail/compiler.h"
#include "ballast/detail/function.h"

#pragma GCC visibility push(default)

namespace ballast {

/// How many times the size of their file all tensors together may show, beside 64 MiB; see OpenOptions.
inline constexpr double kExpansion = 16;

/// How tensors come into memory.
enum class Io : std::uint8_t {
  automatic,  ///< map; on a network file system, where each page fault may be a round trip, read
  map,        ///< tensors are views of the mapped file
  read,       ///< tensors are read by position when they are needed; nothing is mapped
  direct,     ///< read, and past the page cache: what other programs have there stays
};

/// "auto", "map", "read", "direct".
[[nodiscard]] std::vector<std::string> io_names();

/// One of io_names(); Errc::invalid_argument for anything else.
[[nodiscard]] Io io_from_name(std::string_view name);

/// Called now and then with bytes done and bytes in all, from one thread at a time but not always the same;
/// throwing from it stops the work, and nothing half-done remains.
using Progress = Function<void(std::uint64_t done, std::uint64_t total)>;

/// The caller's thread included. Until set: OMP_NUM_THREADS where it is a number, else the cores this process
/// may use, by its affinity and the CPU quota of its control groups. At least 1.
[[nodiscard]] int thread_count() noexcept;
/// For work that starts after the call. Throws Errc::invalid_argument below 1.
void set_thread_count(int count);

}  // namespace ballast

#pragma GCC visibility pop
