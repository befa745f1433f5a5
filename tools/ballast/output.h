// SPDX-License-Identifier: Apache-2.0
// Standard output: collected in large pieces, and a failed write is an error and not silence.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace tool {

class Output {
 public:
  void write(std::string_view text);
  void line(std::string_view text);

  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    flush_when_large();
  }

  /// Throws ballast::Error when the bytes cannot be written.
  void flush();

  /// Forgets what was not written yet.
  void discard() noexcept { buffer_.clear(); }

 private:
  void flush_when_large();
  void put(std::string_view text);
  std::string buffer_;
};

}  // namespace tool
