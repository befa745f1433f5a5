// SPDX-License-Identifier: Apache-2.0
#include "signals.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "ballast/error.h"
#include "ballast/io.h"
#include "json.h"

namespace tool {
namespace {

// What a handler may touch: prepared bytes and flags. A reader of a half-replaced message would print a torn
// line, no worse.
struct Prepared {
  std::array<char, 4096> text{};
  std::atomic<std::size_t> size{0};

  void set(std::string_view from) {
    size.store(0);
    const std::size_t length = std::min(from.size(), text.size());
    std::memcpy(text.data(), from.data(), length);
    size.store(length);
  }

  void write_to(int descriptor) const {
    const ssize_t ignored = ::write(descriptor, text.data(), size.load());
    static_cast<void>(ignored);
  }
};

// Global: signal handlers have no arguments.
Prepared shrunk_message;
Prepared shrunk_json;
std::atomic<bool> bar_is_drawn{false};

void wipe_progress_line() {
  if (!bar_is_drawn.load()) return;
  const ssize_t ignored = ::write(STDERR_FILENO, "\r\x1b[K", 4);
  static_cast<void>(ignored);
}

// Dies of the very signal, so that a shell's loop stops at Ctrl-C and $? is 130 or 143.
extern "C" void on_stop(int signal) {
  ballast::discard_unfinished_files();
  wipe_progress_line();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

extern "C" void on_bus_error(int) {
  ballast::discard_unfinished_files();
  wipe_progress_line();
  shrunk_message.write_to(STDERR_FILENO);
  shrunk_json.write_to(STDOUT_FILENO);
  _exit(2);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};

  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  // Unblocked inside the handler, so that the second, deadly one is delivered at once.
  action.sa_flags = SA_NODEFER;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  handle(SIGPIPE, on_stop);
  for (const int signal :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2}) {
    struct sigaction current {};

    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN)
      handle(signal, on_stop);  // nohup and a shell's background jobs ignore some on purpose
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit becomes EFBIG and with it an Error
  handle(SIGBUS, on_bus_error);
  shrunk_message.set("ballast: a file changed or shrank while it was read [file-changed]\n");
}

void reading_file(const std::string& path, bool json) {
  const std::string shown = ballast::display(path);
  shrunk_message.set("ballast: " + shown + ": changed or shrank while it was read [file-changed]\n");
  shrunk_json.set(json ? to_text(error_object(name(ballast::Errc::file_changed), shown,
                                              "changed or shrank while it was read")) +
                             '\n'
                       : std::string());
}

void progress_line_shown(bool shown) noexcept {
  bar_is_drawn.store(shown);
}

}  // namespace tool
