// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while C++ is at work. Python's handlers of signals run on the main thread alone and only when they
// are asked for, so there long work goes to a thread of its own, and the main thread looks for signals
// meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "py.h"

namespace py {

/// Work of fewer bytes is done before anybody would press a key.
constexpr std::uint64_t kLongWork = std::uint64_t{16} << 20U;

/// The bytes of a file; as many as there can be where that says nothing of the work (folders, shards).
[[nodiscard]] std::uint64_t work_at(const std::string& path);

/// The bytes of all tensors.
[[nodiscard]] std::uint64_t work_of(const ballast::Checkpoint& checkpoint);

/// Work that is told to stop, and has ended when it is waited for: it may write files and use what its caller
/// has.
class Watch {
 public:
  explicit Watch(std::uint64_t bytes) : long_(bytes >= kLongWork) {}

  /// Calls a Python function with the bytes done and in all, from whatever thread; what it raises stops the
  /// work, and so does Ctrl-C, without a function, too. Call it with the GIL free.
  [[nodiscard]] ballast::Progress progress(PyObject* callable_or_null) const;

  /// What `work` gives; the GIL is free for others meanwhile.
  template <class Work>
  auto run(const Work& work) const {
    std::optional<decltype(work())> result;
    run_watched([&] { result.emplace(work()); });
    return std::move(*result);
  }

 private:
  void run_watched(const std::function<void()>& work) const;

  std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  bool long_;
};

/// For run_or_leave().
void run_left_alone(const std::shared_ptr<std::function<void()>>& work);

/// What `work` of so many bytes gives, which cannot be stopped: after Ctrl-C it goes on by itself, and what
/// it gives is dropped. It must hold whatever it uses.
template <class Work>
auto run_or_leave(std::uint64_t bytes, Work work) {
  if (bytes < kLongWork) {
    const Unlocked unlocked;
    return work();
  }
  const auto result = std::make_shared<std::optional<decltype(work())>>();
  run_left_alone(
      std::make_shared<std::function<void()>>([work = std::move(work), result] { result->emplace(work()); }));
  return std::move(**result);
}

}  // namespace py
