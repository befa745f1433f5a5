// SPDX-License-Identifier: Apache-2.0
// Work that takes longer than an answer may: each on a thread of its own, with how far it is, and a way to
// stop it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "ballast/runtime.h"
#include "json.h"

namespace tool::view {

/// Thrown out of work that is not wanted any more.
struct Cancelled {};

class Jobs {
 public:
  static constexpr std::size_t kMostRunning = 4;
  static constexpr std::size_t kMostKept = 1000;  ///< that are over

  Jobs() = default;
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  /// Cancels what runs, and waits for it.
  ~Jobs();

  /// Gets its own number, and what it tells how far it is, which throws Cancelled when it is to end.
  using Work = std::function<void(std::uint64_t number, const ballast::Progress& progress)>;

  /// One job a key: while one of it runs, that one's number is given. Refused when too many run (409),
  /// and when no thread can be had (503).
  [[nodiscard]] std::uint64_t start(const std::string& kind, const std::string& key, Work work);
  /// {"job","kind","done","total","state","error"}. Refused (404) when there is none.
  [[nodiscard]] Json describe(std::uint64_t number) const;
  void cancel(std::uint64_t number);
  void cancel_all();
  [[nodiscard]] bool is_running(std::uint64_t number) const;
  [[nodiscard]] bool any_running() const;

 private:
  enum class State : std::uint8_t { running, done, failed, cancelled };

  struct Job {
    std::string kind;
    std::string key;
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::uint64_t> total{0};
    std::atomic<bool> is_cancelled{false};
    std::atomic<State> state{State::running};
    Json error = nullptr;  // written before the state says failed
    std::thread thread;
  };

  static void run(std::uint64_t number, Job& job, const Work& work);
  void forget_old();
  [[nodiscard]] Job& at(std::uint64_t number) const;

  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Job>> jobs_;
};

}  // namespace tool::view
