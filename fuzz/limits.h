// SPDX-License-Identifier: Apache-2.0
// What a target may cost. A fuzzer that only looks for crashes does not see 816 bytes that take four
// gigabytes or a minute: memory is counted at every allocation, time is the process's own, and the stack is
// a small one.
#pragma once

#include <sanitizer/allocator_interface.h>
#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/budget.h"

namespace ballast::fuzzing {

[[noreturn]] inline void complain(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// Live bytes of the heap, and the most there may be.
inline std::atomic<std::int64_t> live_bytes = 0;
inline std::atomic<std::int64_t> most_live_bytes = INT64_MAX;

inline void count_allocation(const volatile void* /*block*/, std::size_t size) {
  const std::int64_t live =
      live_bytes.fetch_add(static_cast<std::int64_t>(size)) + static_cast<std::int64_t>(size);
  const std::int64_t most = most_live_bytes.load();
  if (live <= most) return;
  most_live_bytes = INT64_MAX;  // what reports it allocates too
  std::fprintf(stderr, "out of bounds: %lld bytes on the heap, %lld beyond the limit, with a block of %zu\n",
               static_cast<long long>(live), static_cast<long long>(live - most), size);
  std::abort();
}

inline void count_release(const volatile void* block) {
  if (block != nullptr)
    live_bytes -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(block)));
}

// A sanitizer's frames are about four times as large as ours: this stands for a stack of 256 kB.
inline constexpr rlim_t kStackBytes = rlim_t{1} << 20U;

/// Once, from LLVMFuzzerInitialize. The stack of the main thread grows on demand, so it can be limited late.
inline void watch_memory() {
  __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release);
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = kStackBytes;
  setrlimit(RLIMIT_STACK, &limit);
}

/// What opening so many bytes may cost: the budget, and `more` for what a target does with them.
class Limits {
 public:
  explicit Limits(std::size_t input_bytes, std::uint64_t more = 0)
      : input_bytes_(input_bytes), began_(seconds()) {
    most_live_bytes = live_bytes + static_cast<std::int64_t>(Budget::kBytes + kSlack + more +
                                                             Budget::kBytesPerByte * input_bytes);
  }

  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  ~Limits() {
    most_live_bytes = INT64_MAX;
    const double took = seconds() - began_;
    const double most = kSeconds + kSecondsPerByte * static_cast<double>(input_bytes_);
    if (took > most)
      complain("out of bounds: " + std::to_string(took) + " s of work for " + std::to_string(input_bytes_) +
               " bytes, the most are " + std::to_string(most));
  }

 private:
  // Containers that grow hold twice what is charged for a moment; the input's own copies.
  static constexpr std::uint64_t kSlack = std::uint64_t{24} << 20U;
  // Of processor time, which a busy machine stretches little, in a build that is several times slower than
  // ours.
  static constexpr double kSeconds = 6;
  static constexpr double kSecondsPerByte = 20e-6;

  static double seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  std::size_t input_bytes_;
  double began_;
};

}  // namespace ballast::fuzzing
