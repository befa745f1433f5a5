// SPDX-License-Identifier: Apache-2.0
#include "ops/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "ballast/runtime.h"
#include "base/thread_pool.h"

// libgomp's interface, declared here because clang has neither its header nor code generation for it.
extern "C" {
int omp_get_max_threads();
int omp_get_thread_num();
int omp_get_num_threads();
int omp_in_parallel();
void omp_set_num_threads(int count);
// NOLINTNEXTLINE(readability-identifier-naming)
void GOMP_parallel(void (*work)(void*), void* data, unsigned threads, unsigned flags);
}

#if defined(__SANITIZE_THREAD__)
#define BALLAST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BALLAST_TSAN 1
#endif
#endif

namespace ballast::ops {

int usable_threads() noexcept {
  return omp_in_parallel() != 0 ? 1 : thread_count();
}

ThreadScope::ThreadScope() noexcept : saved_(omp_get_max_threads()) {
  omp_set_num_threads(usable_threads());
}

ThreadScope::~ThreadScope() {
  omp_set_num_threads(saved_);
}

#if defined(BALLAST_TSAN)

// The sanitizer does not see how libgomp's threads wait for each other, and would report every loop.
void parallel(std::int64_t count, std::int64_t grain, const Piece& work) {
  parallel_for(static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0)),
               static_cast<std::uint64_t>(std::max<std::int64_t>(grain, 1)),
               [&](std::uint64_t begin, std::uint64_t end) {
                 work(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
               });
}

#else

namespace {

struct Job {
  std::int64_t count;
  std::int64_t wanted;  // threads that have something to do
  const Piece& work;
  std::atomic<bool> failed{false};
  std::exception_ptr error{};
};

void share(void* data) {
  Job& job = *static_cast<Job*>(data);
  // The runtime may give fewer than it was asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC).
  const std::int64_t threads = std::min<std::int64_t>(job.wanted, omp_get_num_threads());
  const std::int64_t me = omp_get_thread_num();
  if (me >= threads) return;
  const std::int64_t part = job.count / threads;
  const std::int64_t extra = job.count % threads;
  const std::int64_t begin = me * part + std::min(me, extra);
  const std::int64_t end = begin + part + (me < extra ? 1 : 0);
  try {
    job.work(begin, end);
  } catch (...) {
    if (!job.failed.exchange(true)) job.error = std::current_exception();
  }
}

}  // namespace

void parallel(std::int64_t count, std::int64_t grain, const Piece& work) {
  if (count <= 0) return;
  const std::int64_t pieces = (count - 1) / std::max<std::int64_t>(grain, 1) + 1;
  const std::int64_t usable = usable_threads();
  const std::int64_t threads = std::min(usable, pieces);
  if (threads == 1) return work(0, count);
  Job job{count, threads, work};
  // The whole team, whatever there is to do: libgomp ends threads when a region is smaller than the one
  // before and makes them again for the next larger one, which takes longer than the work
  // (docs/decisions/0014).
  GOMP_parallel(share, &job, static_cast<unsigned>(usable), 0);
  if (job.error) std::rethrow_exception(job.error);
}

#endif

}  // namespace ballast::ops
