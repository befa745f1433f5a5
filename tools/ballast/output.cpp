// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "ballast/error.h"

namespace tool {
namespace {

constexpr std::size_t kLarge = 1U << 16U;

}  // namespace

void Output::write(std::string_view text) {
  if (text.size() < kLarge) {
    buffer_ += text;
    flush_when_large();
    return;
  }
  flush();
  put(text);
}

void Output::line(std::string_view text) {
  buffer_ += text;
  buffer_ += '\n';
  flush_when_large();
}

void Output::flush_when_large() {
  if (buffer_.size() >= kLarge) flush();
}

void Output::flush() {
  put(buffer_);
  buffer_.clear();
}

void Output::put(std::string_view left) {
  while (!left.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // another program made the pipe so, for itself
      pollfd room{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written < 0) {
      const int reason = errno;
      buffer_.clear();
      throw ballast::Error(reason == ENOSPC ? ballast::Errc::no_space : ballast::Errc::io_error,
                           "standard output",
                           "cannot be written: " + std::generic_category().message(reason));
    }
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace tool
