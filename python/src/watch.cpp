// SPDX-License-Identifier: Apache-2.0
#include "watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <limits>
#include <mutex>
#include <thread>

#include "ballast/checkpoint.h"

namespace py {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLooks = 50ms;

struct Stopped {};

bool on_main_thread() {
  return syscall(SYS_gettid) == getpid();
}

// What a signal's handler raised, taken out of this thread.
std::optional<Raised> signal_came() {
  const Locked gil;
  if (in_python([] { return PyErr_CheckSignals(); }) == 0) return std::nullopt;
  Raised raised;
  PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
  return raised;
}

class Job {
 public:
  void run(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      failure_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    ended_.notify_all();
  }

  bool ends_within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, time, [this] { return done_; });
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::exception_ptr failure_;
};

std::optional<Raised> wait_or_signal(Job& job) {
  while (!job.ends_within(kBetweenLooks)) {
    if (auto raised = signal_came()) return raised;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t work_at(const std::string& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  const bool is_whole = !failed && !path.ends_with(".json");  // an index stands for its shards
  return is_whole ? size : std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t work_of(const ballast::Checkpoint& checkpoint) {
  std::uint64_t bytes = 0;
  for (const ballast::Entry entry : checkpoint) {
    bytes += entry.bytes;
    if (bytes >= kLongWork) break;
  }
  return bytes;
}

ballast::Progress Watch::progress(PyObject* callable) const {
  if (callable == Py_None) callable = nullptr;
  // The caller's arguments keep it alive as long as the work lasts.
  return [callable, stop = stop_](std::uint64_t done, std::uint64_t total) {
    if (*stop) throw Stopped{};
    if (callable == nullptr && !on_main_thread()) return;
    const Locked gil;
    try {
      check(in_python([] { return PyErr_CheckSignals(); }));
      if (callable == nullptr) return;
      call(callable, to_python(done), to_python(total));
    } catch (const Raised&) {
      // The indicator is this thread's; the exception goes on to the one that waits.
      Raised raised;
      PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
      throw raised;
    }
  };
}

void Watch::run_watched(const std::function<void()>& work) const {
  const Unlocked unlocked;
  if (!long_ || !on_main_thread()) {
    work();
    return;
  }
  Job job;
  std::optional<Raised> raised;
  {
    const std::jthread worker([&] { job.run(work); });
    raised = wait_or_signal(job);
    *stop_ = raised.has_value();
  }
  if (raised) throw *raised;
  job.rethrow();
}

void run_left_alone(const std::shared_ptr<std::function<void()>>& work) {
  const Unlocked unlocked;
  if (!on_main_thread()) {
    (*work)();
    return;
  }
  const auto job = std::make_shared<Job>();
  std::thread([job, held = std::shared_ptr(work)]() mutable {
    const AtWork counted;
    job->run(*held);
    held.reset();  // which may ask for the GIL
  }).detach();
  if (const auto raised = wait_or_signal(*job)) throw *raised;
  job->rethrow();
}

}  // namespace py
