// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/cores.h"
#include "base/fail.h"

namespace ballast {
namespace {

constexpr int kMostThreads = 1024;  // whatever is asked for

std::atomic<int> requested_threads{0};  // 0: as many as this process may use

thread_local bool inside_piece = false;

// One call of parallel_for: pieces are handed out by a counter, so that a slow thread takes fewer.
class Job {
 public:
  Job(std::uint64_t count, std::uint64_t piece, const std::function<void(std::uint64_t, std::uint64_t)>& work)
      : count_(count), piece_(piece), pieces_((count - 1) / piece + 1), work_(work) {}

  void help() noexcept {
    inside_piece = true;
    // The counter counts pieces, not elements: it cannot run over, however often it is asked after the end.
    for (std::uint64_t i = next_++; i < pieces_; i = next_++) {
      const std::uint64_t begin = i * piece_;
      try {
        work_(begin, begin + std::min(piece_, count_ - begin));
      } catch (...) {
        next_.store(pieces_);
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
    inside_piece = false;
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::uint64_t count_;
  const std::uint64_t piece_;
  const std::uint64_t pieces_;
  const std::function<void(std::uint64_t, std::uint64_t)>& work_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr error_;
};

// Threads born meanwhile do not take the program's signals away from its own threads; what a thread does to
// itself (a mapped file that shrank) still reaches its handler.
class OnlyFaults {
 public:
  OnlyFaults() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }

  OnlyFaults(const OnlyFaults&) = delete;
  OnlyFaults& operator=(const OnlyFaults&) = delete;

  ~OnlyFaults() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// Workers wait for tickets; a ticket is one thread's share in a job.
class Pool {
 public:
  void run(Job& job, int helpers) {
    Crew crew{job};
    {
      const std::lock_guard lock(mutex_);
      try {
        grow(helpers);
        for (int i = 0; i < std::min(helpers, workers_); ++i) tickets_.push_back(&crew);
      } catch (const std::exception&) {
        // No thread or no memory for one more: those there are, or this one alone, do the work all the same.
      }
    }
    wake_.notify_all();
    job.help();
    std::unique_lock lock(mutex_);
    // Tickets nobody took yet are not needed any more; those that were taken must come back, they refer to
    // this frame.
    std::erase(tickets_, &crew);
    crew.back.wait(lock, [&] { return crew.busy == 0; });
  }

 private:
  struct Crew {
    Job& job;
    int busy = 0;
    std::condition_variable back{};
  };

  void grow(int wanted) {
    const OnlyFaults guard;
    for (; workers_ < wanted; ++workers_) std::thread([this] { serve(); }).detach();
  }

  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return !tickets_.empty(); });
      Crew& crew = *tickets_.front();
      tickets_.pop_front();
      ++crew.busy;
      lock.unlock();
      crew.job.help();
      lock.lock();
      if (--crew.busy == 0) crew.back.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Crew*> tickets_;
  int workers_ = 0;
};

std::atomic<Pool*> current_pool{nullptr};

// Never destroyed: workers may still wait in it while the program's static objects go. A forked child has
// none of its parent's threads and perhaps its locks as they were in the middle of something; it leaves the
// old pool alone and makes its own.
Pool& pool() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr); });
  static_cast<void>(registered);
  if (Pool* found = current_pool.load()) return *found;
  auto fresh = std::make_unique<Pool>();
  Pool* none = nullptr;
  return current_pool.compare_exchange_strong(none, fresh.get()) ? *fresh.release() : *none;
}

}  // namespace

int thread_count() noexcept {
  const int requested = requested_threads.load();
  // Asked once: the answer comes from files of the system's, and every parallel_for needs it.
  static const int all = default_threads();
  return requested > 0 ? requested : all;
}

void set_thread_count(int count) {
  if (count < 1) fail(Errc::invalid_argument, "set_thread_count", "{} threads cannot do anything", count);
  requested_threads.store(count);
}

void parallel_for(std::uint64_t count, std::uint64_t grain,
                  const std::function<void(std::uint64_t, std::uint64_t)>& work) {
  if (count == 0) return;
  grain = std::max<std::uint64_t>(grain, 1);
  const auto most = static_cast<std::uint64_t>(std::min(thread_count(), kMostThreads));
  const std::uint64_t threads = std::min(most, (count - 1) / grain + 1);
  if (threads == 1 || inside_piece) return work(0, count);
  // About four pieces a thread evens out unequal speed without making the pieces small.
  const std::uint64_t piece = std::max(grain, (count - 1) / (threads * 4) + 1);
  Job job(count, piece, work);
  pool().run(job, static_cast<int>(threads) - 1);
  job.rethrow();
}

void parallel_read(std::uint64_t count, int readers, const std::function<void(std::uint64_t)>& work) {
  if (count == 0) return;
  const auto each = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) work(i);
  };
  const auto threads = static_cast<int>(std::min<std::uint64_t>(count, static_cast<std::uint64_t>(readers)));
  if (threads <= 1 || inside_piece) return each(0, count);
  const std::function<void(std::uint64_t, std::uint64_t)> one = each;
  Job job(count, 1, one);
  pool().run(job, threads - 1);
  job.rethrow();
}

}  // namespace ballast
