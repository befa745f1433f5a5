// SPDX-License-Identifier: Apache-2.0
// How many cores this process may use, which is often fewer than the machine has.
#pragma once

#include <optional>
#include <string>

namespace ballast {

/// The CPU time that control groups (versions 1 and 2, the process' own and those above it) allow, in cores,
/// rounded up; none when they set no limit. `root` stands before /proc and /sys.
[[nodiscard]] std::optional<int> quota_cores(const std::string& root = {});

/// The first number of a list as OMP_NUM_THREADS has it; none when that is no number of threads.
[[nodiscard]] std::optional<int> threads_in(const char* text) noexcept;

/// The cores in the process' affinity mask, or fewer where a quota allows less. At least 1.
[[nodiscard]] int usable_cores() noexcept;

/// What OMP_NUM_THREADS says, else usable_cores().
[[nodiscard]] int default_threads() noexcept;

}  // namespace ballast
