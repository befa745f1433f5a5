// SPDX-License-Identifier: Apache-2.0
#include "ops/parallel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ballast/runtime.h"

// As a program compiled with -fopenmp calls it.
extern "C" void omp_set_dynamic(int dynamic);

namespace ballast {
namespace {

class Parallel : public testing::Test {
 protected:
  ~Parallel() override { set_thread_count(before_); }

  // Every element of count × 3, in loops inside loops, is worked on once.
  static void expect_all_once(std::int64_t count, std::int64_t grain) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count) * 3);
    ops::parallel(count, grain, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_LT(begin, end);
      for (std::int64_t i = begin; i < end; ++i) {
        ops::parallel(3, 1, [&](std::int64_t from, std::int64_t to) {
          for (std::int64_t j = from; j < to; ++j) ++seen[static_cast<std::size_t>(i * 3 + j)];
        });
      }
    });
    for (const auto& times : seen) ASSERT_EQ(times, 1) << count << ' ' << grain;
  }

 private:
  int before_ = thread_count();
};

TEST_F(Parallel, EveryElementIsWorkedOnOnceByManyCallersAndInLoopsInsideLoops) {
  for (const int threads : {1, 2, 4, 7}) {
    set_thread_count(threads);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([caller] {
        for (std::int64_t count = 0; count < 20; ++count) expect_all_once(count, 1 + caller % 3);
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

TEST_F(Parallel, AnExceptionOutOfAnyPieceReachesTheCaller) {
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    for (std::int64_t bad = 0; bad < 10; ++bad) {
      const auto work = [&](std::int64_t begin, std::int64_t end) {
        if (begin <= bad && bad < end) throw std::out_of_range("piece");
      };
      EXPECT_THROW(ops::parallel(10, 1, work), std::out_of_range);
      expect_all_once(10, 1);
    }
  }
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(Parallel, ThreadsStayWhateverSizesFollowEachOther) {
  set_thread_count(8);
  std::mutex mutex;
  std::set<pid_t> threads;
  for (std::int64_t before = 2; before <= 8; ++before) {
    for (std::int64_t count = 2; count <= 8; ++count) {
      for (const std::int64_t pieces : {before, count}) {
        ops::parallel(pieces, 1, [&](std::int64_t, std::int64_t) {
          const std::lock_guard lock(mutex);
          threads.insert(gettid());
        });
      }
    }
  }
  EXPECT_EQ(threads.size(), 8U);
}

TEST_F(Parallel, NothingIsLeftOutWhenOpenMpGivesFewerThreadsThanItWasAskedFor) {
  set_thread_count(64);
  omp_set_dynamic(1);
  for (std::int64_t count = 1; count < 100; count += 7) expect_all_once(count, 1);
  omp_set_dynamic(0);
}
#endif

}  // namespace
}  // namespace ballast
