// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fail.h"

namespace ballast {
namespace {

std::atomic<int> requested_threads{0};  // 0: as many as the machine has

thread_local bool inside_piece = false;

// One call of parallel_for: pieces are handed out by a counter, so that a slow thread takes fewer.
class Job {
 public:
  Job(std::uint64_t count, std::uint64_t piece, const std::function<void(std::uint64_t, std::uint64_t)>& work)
      : count_(count), piece_(piece), work_(work) {}

  void help() noexcept {
    inside_piece = true;
    for (;;) {
      const std::uint64_t begin = next_.fetch_add(piece_);
      if (begin >= count_) break;
      try {
        work_(begin, std::min(begin + piece_, count_));
      } catch (...) {
        next_.store(count_);
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
  const std::function<void(std::uint64_t, std::uint64_t)>& work_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr error_;
};

// Workers wait for tickets; a ticket is one thread's share in a job.
class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(Job& job, int helpers) {
    Crew crew{job};
    {
      const std::lock_guard lock(mutex_);
      while (static_cast<int>(workers_.size()) < helpers) workers_.emplace_back([this] { serve(); });
      for (int i = 0; i < helpers; ++i) tickets_.push_back(&crew);
    }
    wake_.notify_all();
    job.help();
    std::unique_lock lock(mutex_);
    // Tickets nobody took yet are not needed any more; those that were taken must come back, they refer to this frame.
    std::erase(tickets_, &crew);
    crew.back.wait(lock, [&] { return crew.busy == 0; });
  }

 private:
  struct Crew {
    Job& job;
    int busy = 0;
    std::condition_variable back{};
  };

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return closing_ || !tickets_.empty(); });
      if (closing_) return;
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
  std::vector<std::thread> workers_;
  bool closing_ = false;
};

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

int thread_count() noexcept {
  const int requested = requested_threads.load();
  return requested > 0 ? requested : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void set_thread_count(int count) {
  if (count < 1) fail(Errc::invalid_argument, "set_thread_count", "{} threads cannot do anything", count);
  requested_threads.store(count);
}

void parallel_for(std::uint64_t count, std::uint64_t grain,
                  const std::function<void(std::uint64_t, std::uint64_t)>& work) {
  if (count == 0) return;
  grain = std::max<std::uint64_t>(grain, 1);
  const std::uint64_t threads = std::min<std::uint64_t>(static_cast<std::uint64_t>(thread_count()), (count - 1) / grain + 1);
  if (threads == 1 || inside_piece) return work(0, count);
  // About four pieces a thread evens out unequal speed without making the pieces small.
  const std::uint64_t piece = std::max(grain, (count - 1) / (threads * 4) + 1);
  Job job(count, piece, work);
  pool().run(job, static_cast<int>(threads) - 1);
  job.rethrow();
}

}  // namespace ballast
