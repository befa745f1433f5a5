// SPDX-License-Identifier: Apache-2.0
#include "view/jobs.h"

#include <fmt/format.h>

#include "view/response.h"

namespace tool::view {

Jobs::~Jobs() {
  cancel_all();
  for (auto& [number, job] : jobs_) {
    if (job->thread.joinable()) job->thread.join();
  }
}

void Jobs::run(std::uint64_t number, Job& job, const Work& work) {
  try {
    work(number, [&job](std::uint64_t done, std::uint64_t total) {
      job.done.store(done);
      job.total.store(total);
      if (job.is_cancelled.load()) throw Cancelled();
    });
    job.done.store(job.total.load());
    job.state.store(State::done);
  } catch (const Cancelled&) {
    job.state.store(State::cancelled);
  } catch (...) {
    job.error = Json::parse(current_exception_response().body)["error"];
    job.state.store(State::failed);
  }
}

// A thread that is over holds its stack until somebody joins it.
void Jobs::forget_old() {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Job& job = *at->second;
    const bool is_over = job.state.load() != State::running;
    if (is_over && job.thread.joinable()) job.thread.join();
    at = is_over && jobs_.size() > kMostKept ? jobs_.erase(at) : std::next(at);
  }
}

std::uint64_t Jobs::start(const std::string& kind, const std::string& key, Work work) {
  const std::lock_guard lock(mutex_);
  forget_old();
  std::size_t running = 0;
  for (const auto& [number, job] : jobs_) {
    if (job->state.load() != State::running) continue;
    if (job->key == key && !job->is_cancelled.load()) return number;
    ++running;
  }
  if (running >= kMostRunning)
    throw Refused{409, "too-many", fmt::format("{} jobs run already; cancel one or wait", running)};
  const std::uint64_t number = ++last_;
  Job& job = *jobs_.emplace(number, std::make_unique<Job>()).first->second;
  job.kind = kind;
  job.key = key;
  try {
    job.thread = std::thread([number, &job, work = std::move(work)] { run(number, job, work); });
  } catch (const std::system_error& error) {
    jobs_.erase(number);
    throw Refused{503, "too-many", fmt::format("no thread can be had for it: {}", error.what())};
  }
  return number;
}

Jobs::Job& Jobs::at(std::uint64_t number) const {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) throw Refused{404, "not-found", fmt::format("there is no job {}", number)};
  return *found->second;
}

Json Jobs::describe(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const Job& job = at(number);
  const State state = job.state.load();
  constexpr const char* kStates[] = {"running", "done", "failed", "cancelled"};
  return {{"job", number},
          {"kind", job.kind},
          {"done", job.done.load()},
          {"total", job.total.load()},
          {"state", kStates[static_cast<std::size_t>(state)]},
          {"error", state == State::failed ? job.error : Json(nullptr)}};
}

void Jobs::cancel(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  at(number).is_cancelled.store(true);
}

void Jobs::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [number, job] : jobs_) job->is_cancelled.store(true);
}

bool Jobs::is_running(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return at(number).state.load() == State::running;
}

bool Jobs::any_running() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, job] : jobs_) {
    if (job->state.load() == State::running) return true;
  }
  return false;
}

}  // namespace tool::view
