// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "ballast/error.h"

namespace ballast {
namespace {

class ThreadPool : public testing::Test {
 protected:
  ~ThreadPool() override { set_thread_count(before_); }

 private:
  int before_ = thread_count();
};

TEST_F(ThreadPool, EveryElementIsWorkedOnOnce) {
  for (const int threads : {1, 2, 3, 8, 33}) {
    set_thread_count(threads);
    for (const std::uint64_t count : {0U, 1U, 2U, 7U, 100U, 1001U}) {
      for (const std::uint64_t grain : {0U, 1U, 3U, 64U, 5000U}) {
        std::vector<std::atomic<int>> seen(count);
        std::atomic<int> pieces = 0;
        parallel_for(count, grain, [&](std::uint64_t begin, std::uint64_t end) {
          EXPECT_LT(begin, end);
          EXPECT_TRUE(end - begin >= grain || end == count);
          ++pieces;
          for (std::uint64_t i = begin; i < end; ++i) ++seen[i];
        });
        for (const auto& times : seen) ASSERT_EQ(times, 1);
        if (count == 0) {
          EXPECT_EQ(pieces, 0);
        }
        if (count > 0 && grain >= count) {
          EXPECT_EQ(pieces, 1);
        }
      }
    }
  }
}

TEST_F(ThreadPool, CountsNearTheEndOfSixtyFourBitsDoNotRunOver) {
  set_thread_count(3);
  constexpr std::uint64_t kGrain = std::uint64_t{1} << 62;
  std::mutex mutex;
  std::uint64_t sum = 0;
  int pieces = 0;
  parallel_for(UINT64_MAX, kGrain, [&](std::uint64_t begin, std::uint64_t end) {
    const std::lock_guard lock(mutex);
    sum += end - begin;
    ++pieces;
  });
  EXPECT_EQ(sum, UINT64_MAX);
  EXPECT_EQ(pieces, 4);
}

TEST_F(ThreadPool, TheFirstExceptionReachesTheCallerAndEndsTheWork) {
  for (const int threads : {1, 4}) {
    set_thread_count(threads);
    std::atomic<int> pieces = 0;
    try {
      parallel_for(1'000'000, 1, [&](std::uint64_t, std::uint64_t) {
        ++pieces;
        throw Error(Errc::io_error, "piece", "no");
      });
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::io_error);
    }
    EXPECT_LE(pieces, threads);
    // And the pool works on.
    std::atomic<std::uint64_t> sum = 0;
    parallel_for(100, 1, [&](std::uint64_t begin, std::uint64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 100U);
  }
}

TEST_F(ThreadPool, CallsInsideAPieceRunInline) {
  set_thread_count(4);
  std::atomic<std::uint64_t> sum = 0;
  parallel_for(16, 1, [&](std::uint64_t begin, std::uint64_t end) {
    const auto outer = std::this_thread::get_id();
    for (std::uint64_t i = begin; i < end; ++i) {
      parallel_for(1000, 1, [&](std::uint64_t from, std::uint64_t to) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        sum += to - from;
      });
    }
  });
  EXPECT_EQ(sum, 16'000U);
}

TEST_F(ThreadPool, SeveralCallersShareIt) {
  set_thread_count(3);
  std::atomic<std::uint64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        parallel_for(64, 1, [&](std::uint64_t begin, std::uint64_t end) { sum += end - begin; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4U * 50U * 64U);
}

TEST_F(ThreadPool, AtLeastOneThreadIsNeeded) {
  EXPECT_GE(thread_count(), 1);
  EXPECT_THROW(set_thread_count(0), Error);
  EXPECT_THROW(set_thread_count(-3), Error);
  set_thread_count(7);
  EXPECT_EQ(thread_count(), 7);
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(ThreadPool, AForkedChildWorksAndExits) {
  set_thread_count(3);
  parallel_for(64, 1, [](std::uint64_t, std::uint64_t) {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<std::uint64_t> sum = 0;
    parallel_for(64, 1, [&](std::uint64_t begin, std::uint64_t end) { sum += end - begin; });
    std::quick_exit(sum == 64 ? 0 : 1);
  }
  int status = 0;
  for (int i = 0; i < 200 && waitpid(child, &status, WNOHANG) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (i == 199) kill(child, SIGKILL);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

#if !defined(BALLAST_SANITIZED)  // sanitizers need address space themselves
TEST_F(ThreadPool, WorkIsDoneWhenNoThreadCanBeStarted) {
  const pid_t child = fork();  // a limit that cannot be lifted again is for a process of its own
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Threads need address space for their stacks: there is none left for another.
    rlimit limit{64U << 20U, 64U << 20U};
    setrlimit(RLIMIT_STACK, &limit);
    rlimit none{1, 1};
    setrlimit(RLIMIT_NPROC, &none);
    setrlimit(RLIMIT_AS, &none);
    std::atomic<std::uint64_t> sum = 0;
    set_thread_count(1000);
    parallel_for(1000, 1, [&](std::uint64_t begin, std::uint64_t end) { sum += end - begin; });
    std::_Exit(sum == 1000 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

TEST_F(ThreadPool, WorkersLeaveTheProgramsSignalsToItsOwnThreads) {
  set_thread_count(4);
  std::mutex mutex;
  std::set<std::thread::id> workers;
  const auto caller = std::this_thread::get_id();
  for (int round = 0; round < 200 && workers.empty(); ++round) {
    parallel_for(64, 1, [&](std::uint64_t, std::uint64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      const std::lock_guard lock(mutex);
      if (std::this_thread::get_id() == caller) {
        EXPECT_EQ(sigismember(&blocked, SIGINT), 0);
      } else {
        workers.insert(std::this_thread::get_id());
        EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
        EXPECT_EQ(sigismember(&blocked, SIGBUS), 0);
      }
    });
  }
  EXPECT_FALSE(workers.empty());
}

}  // namespace
}  // namespace ballast
