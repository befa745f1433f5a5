// SPDX-License-Identifier: Apache-2.0
// A value that is made when it is first asked for, once, whoever asks first.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

namespace ballast {

/// Safe to use from several threads. When making it throws, the next one who asks tries again.
template <class T>
class Lazy {
 public:
  /// `make` gives the same value every time.
  template <class Make>
  [[nodiscard]] const T& get(Make&& make) const {
    std::call_once(once_, [&] {
      value_ = std::forward<Make>(make)();
      ready_.store(true, std::memory_order_release);
    });
    return value_;
  }

  /// Whether it was made: then get() only hands it out.
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }

  /// What was made; empty unless ready().
  [[nodiscard]] const T& made() const noexcept { return value_; }

 private:
  mutable std::once_flag once_;
  mutable T value_{};
  mutable std::atomic<bool> ready_{false};
};

}  // namespace ballast
