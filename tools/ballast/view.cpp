// SPDX-License-Identifier: Apache-2.0
// ballast view: a page in the browser that shows the numbers of a file, served from this machine to this
// machine. What it answers is in view/.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <system_error>
#include <thread>

#include "ballast/error.h"
#include "ballast/scan.h"
#include "commands.h"
#include "view/app.h"

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;

struct ViewArguments {
  std::string file;
  std::string other;
  std::uint16_t port = 0;
  bool no_open = false;
  bool stay = false;
  int idle_seconds = 600;
};

// What Ballast refuses to read may still be scanned, and its pickle looked at: then there are no tensors.
ballast::Checkpoint open_or_scan(Session& session, const std::string& path) {
  try {
    return session.open(path, {.io = ballast::Io::read, .inert = true});
  } catch (const ballast::Error& error) {
    const bool is_pickles =
        error.code() >= ballast::Errc::forbidden_global && error.code() <= ballast::Errc::missing_storage;
    if (!is_pickles) throw;
    ballast::Checkpoint empty;
    empty.format = ballast::scan(path, false).format;
    empty.path = path;
    empty.notes.push_back(fmt::format("its tensors cannot be shown: {}", error.what()));
    session.warn(empty.notes.back());
    return empty;
  }
}

bool has_screen() {
  const auto is_set = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
  };
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

// Nobody waits for the browser, and what it prints is not ours.
void open_browser(const std::string& url) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string program = "xdg-open";
  std::string address = url;
  char* words[] = {program.data(), address.data(), nullptr};
  pid_t child = 0;
  const bool is_started = posix_spawnp(&child, program.c_str(), &actions, nullptr, words, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  try {
    if (is_started) std::thread([child] { ::waitpid(child, nullptr, 0); }).detach();
  } catch (const std::system_error&) {  // no thread: the child is waited for when this ends
  }
}

// What is asked for first is made at once; without a thread for it, when it is asked for.
std::jthread warm_up(const view::App& app) {
  try {
    return std::jthread([&app] {
      for (const auto& document : app.documents) document->warm_up();
    });
  } catch (const std::system_error&) {
    return {};
  }
}

void announce(Session& session, const ViewArguments& arguments, const view::App& app, std::uint16_t port) {
  const std::string address = fmt::format("http://127.0.0.1:{}/", port);
  const std::string url = address + "#token=" + app.guard.token();
  if (session.json)
    write_document(session.out, {{"schema", 1}, {"url", url}, {"port", port}, {"file", arguments.file}});
  else
    session.out.line(url);
  session.out.flush();
  const bool opens = !arguments.no_open && has_screen();
  if (opens) open_browser(address + "#code=" + app.guard.code());
  session.note(opens ? "the page opens in the browser; Ctrl-C ends it"
                     : "open this address in a browser on this machine (elsewhere: ssh -L); Ctrl-C ends it");
}

// Connections come and go, each on its thread: without this, each would leave free memory behind for itself.
// Nor does what an exact pass gives back stay: by itself, the C library would keep blocks of up to 32 MB.
void share_memory_among_threads() {
#if defined(__GLIBC__)
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

int serve(Session& session, const ViewArguments& arguments) {
  share_memory_among_threads();
  view::App app;
  for (const std::string& path : {arguments.file, arguments.other}) {
    if (path.empty()) continue;
    app.documents.push_back(std::make_unique<view::Document>(path, open_or_scan(session, path)));
  }
  view::Server server(arguments.port);
  app.quit = [&server] { server.stop(); };
  app.warn = [&session](const std::string& text) { session.warn(text); };
  app.see();
  announce(session, arguments, app, server.port());
  const auto idle = std::chrono::seconds(arguments.idle_seconds);
  const std::jthread warming = warm_up(app);
  server.serve(
      [&app](const view::Request& request, const view::Gone& gone) { return answer(app, request, gone); },
      [&] {
        const Clock::time_point seen{Clock::duration(app.last_seen.load())};
        return !arguments.stay && Clock::now() - seen > idle && !app.jobs.any_running();
      });
  return kFine;
}

}  // namespace

void add_view(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ViewArguments>();
  CLI::App& command = add_command(app, session, "view", "look at the numbers of a file in the browser",
                                  "  ballast view model.safetensors\n"
                                  "  ballast view before.pt after.safetensors\n"
                                  "  ballast view model.pt --no-open --port 8000\n"
                                  "\n"
                                  "The page is served to this machine alone. On another one:\n"
                                  "  ssh -L 8000:127.0.0.1:8000 HOST ballast view model.pt --port 8000");
  command.add_option("FILE", arguments->file, "A checkpoint of any format")->required();
  command.add_option("OTHER", arguments->other, "Another one, to compare with it");
  command.add_flag("--no-open", arguments->no_open, "Print the address, and open no browser");
  command.add_option("--port", arguments->port, "The port to listen on (default: any that is free)")
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
  command.add_flag("--stay", arguments->stay, "Do not end ten minutes after the last page is closed");
  command.add_option("--idle", arguments->idle_seconds)->group("");  // for tests
  command.callback(
      [&session, arguments] { session.run = [&session, arguments] { return serve(session, *arguments); }; });
}

}  // namespace tool
