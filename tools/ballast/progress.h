// SPDX-License-Identifier: Apache-2.0
// Progress on standard error: on a terminal a bar, redrawn ten times a second and gone when the work is;
// elsewhere (logs) a line now and then, where the work lasts.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "ballast/runtime.h"
#include "terminal.h"

namespace tool {

class ProgressBar {
 public:
  ProgressBar(const Terminal& terminal, bool wanted, std::string label);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// From any thread.
  void update(std::uint64_t done, std::uint64_t total);
  /// For the library's calls: empty when nothing would be shown.
  [[nodiscard]] ballast::Progress callback();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(std::uint64_t done, std::uint64_t total, double seconds) const;

  Terminal terminal_;
  bool enabled_;
  Clock::duration between_;  // two drawings, or two lines
  std::string label_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_ = start_;
  std::mutex mutex_;
  bool shown_ = false;
};

/// What stands beside the bar: "50 %  1.00 GiB / 2.00 GiB  512 MiB/s  2 s left".
[[nodiscard]] std::string progress_figures(std::uint64_t done, std::uint64_t total, double seconds);

/// The line without its escapes: "label  [=====>    ]  50 %  1.00 GiB / 2.00 GiB  512 MiB/s  2 s left", cut
/// to `width`.
[[nodiscard]] std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total,
                                        double seconds, bool unicode, int width);

}  // namespace tool
