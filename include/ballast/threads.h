// SPDX-License-Identifier: Apache-2.0
// How many threads Ballast works with.
#pragma once

namespace ballast {

/// The caller's thread included. Until set: OMP_NUM_THREADS where it is a number, else the cores this process
/// may use, by its affinity and the CPU quota of its control groups. At least 1.
[[nodiscard]] int thread_count() noexcept;
/// For work that starts after the call. Throws Errc::invalid_argument below 1.
void set_thread_count(int count);

}  // namespace ballast
