// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>

#include "ballast/error.h"
#include "ballast/runtime.h"
#include "fail.h"
#include "help.h"
#include "signals.h"
#include "text.h"

namespace tool {
namespace {

struct Failure {
  std::string code;
  std::string where;
  std::string message;
};

// The sentence without its place: what() is "where: sentence".
std::string sentence_of(const ballast::Error& error) {
  std::string_view what = error.what();
  if (!error.where().empty() && what.starts_with(error.where() + ": "))
    what.remove_prefix(error.where().size() + 2);
  return std::string(what);
}

Failure current_failure() {
  try {
    throw;
  } catch (const ballast::Error& error) {
    const bool exists = error.code() == ballast::Errc::already_exists;
    return {std::string(name(error.code())), error.where(), exists ? kOverwriteHint : sentence_of(error)};
  } catch (const std::bad_alloc&) {
    return {"out-of-memory", "", "not enough memory"};
  } catch (const std::exception& error) {
    return {"internal", "", std::string("unexpected: ") + error.what()};
  } catch (...) {
    return {"internal", "", "unexpected: an exception of unknown type"};
  }
}

// Lines of a message stay lines; anything else that could steer a terminal does not get through.
std::string safe(std::string_view text) {
  constexpr std::size_t kLongest = 8192;
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    out += ballast::display(text.substr(0, end), kLongest);
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

void write_stderr(std::string text) {
  text += '\n';
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) {
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written <= 0) return;  // nobody left to tell
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

ColorChoice choice_of(std::string_view word) {
  if (word == "always") return ColorChoice::always;
  return word == "never" ? ColorChoice::never : ColorChoice::automatic;
}

// What a command prints, which is a secret: an agent, a key store, a device.
std::string output_of(const std::string& command) {
  constexpr std::size_t kMost = 64U << 10U;
  FILE* pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) fail(ballast::Errc::io_error, "--identity-command", "cannot be run");
  std::string text(kMost, '\0');
  text.resize(fread(text.data(), 1, text.size(), pipe));
  if (pclose(pipe) != 0)
    fail(ballast::Errc::invalid_argument, "--identity-command",
         "the command failed, and what it printed is not used");
  return text + '\n';  // a text, not the name of a file
}

}  // namespace

void Session::settle() {
  stdout_terminal = look_at(STDOUT_FILENO, choice_of(color));
  stderr_terminal = look_at(STDERR_FILENO, choice_of(color));
  if (threads > 0) ballast::set_thread_count(threads);
}

void Session::take_keys() {
  if (identities.empty() && identity_command.empty() && passphrase_file.empty()) return;
  if (!identity_command.empty()) identities.push_back(output_of(identity_command));
  ballast::set_identities(std::move(identities), passphrase_file);
}

void Session::about_to_read(const std::string& path) const {
  if (path == "-") {
    fail(ballast::Errc::unsupported, "standard input",
         "cannot be read: a checkpoint is read by position, and a pipe has none; save it to a file first");
  }
  reading_file(path, json);
}

ballast::Io Session::io_or(ballast::Io usual) const {
  return io.empty() ? usual : ballast::io_from_name(io);
}

ballast::Checkpoint Session::open(const std::string& path, const ballast::OpenOptions& options) const {
  about_to_read(path);
  ballast::OpenOptions settled = options;
  settled.io = io_or(options.io);
  settled.expansion = expansion;
  return ballast::open(path, settled);
}

ProgressBar Session::progress(std::string_view verb, const std::string& path) const {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  return {stderr_terminal, !quiet && !no_progress, fmt::format("{} {}", verb, ballast::display(file, 40))};
}

void Session::note(std::string_view text) const {
  if (!quiet) write_stderr(stderr_terminal.paint("note:", Style::cyan) + ' ' + safe(text));
}

void Session::warn(std::string_view text) const {
  write_stderr("ballast: " + stderr_terminal.paint("warning:", Style::yellow) + ' ' + safe(text));
}

void Session::report(std::string_view code, std::string_view where, std::string_view message) {
  const std::string place = where.empty() ? std::string() : safe(where) + ": ";
  write_stderr(stderr_terminal.paint("ballast:", Style::red) + ' ' + place + safe(message) +
               stderr_terminal.paint(fmt::format(" [{}]", code), Style::dim));
  if (!json) return;
  out.line(to_text(error_object(code, where, message)));
}

void Session::report_current_exception() {
  const Failure failure = current_failure();
  report(failure.code, failure.where, failure.message);
}

Json Session::current_exception_as_json() const {
  const Failure failure = current_failure();
  return error_object(failure.code, failure.where, failure.message)["error"];
}

namespace {

// A file that failed: its object has an "error", the only file's is left out where nothing of it was
// written. True when the document is done for.
bool report_in_list(Session& session, JsonStream& json, bool several, const JsonStream::Mark& before,
                    const std::string& file) {
  session.out.flush();  // what is known comes before what is not
  if (!session.json) {
    session.report_current_exception();
    return false;
  }
  const bool is_fresh = json.take_back(before);
  const bool alone = !several && is_fresh;
  if (!alone) {
    if (is_fresh)
      json.begin_object().member("file", file);
    else
      while (json.depth() > before.depth + (several ? 1 : 0)) json.end();
    json.member("error", session.current_exception_as_json());
  }
  session.json = alone;
  session.report_current_exception();
  session.json = true;
  return alone;
}

}  // namespace

int for_each_file(Session& session, const std::vector<std::string>& files,
                  const std::function<int(const std::string&, JsonStream&)>& work) {
  const bool several = files.size() > 1;
  int worst = kFine;
  const bool rows = several && session.json;
  JsonStream json(session.out);
  if (session.json) json.begin_object().member("schema", 1);
  if (rows) json.key("files").begin_rows();
  for (const std::string& file : files) {
    const JsonStream::Mark before = json.mark();
    if (rows) json.begin_object();
    if (session.json) json.member("file", file);
    try {
      worst = std::max(worst, work(file, json));
    } catch (...) {
      worst = kFailed;
      if (report_in_list(session, json, several, before, file)) return worst;
    }
    if (rows) json.end();
  }
  if (session.json) json.finish();
  return worst;
}

namespace {

void add_key_options(CLI::App& command, Session& session) {
  const std::string group = kCommonOptions;
  command
      .add_option("--identity", session.identities,
                  "A file of age's with what opens encrypted files; may be given several times "
                  "(default: $BALLAST_IDENTITY)")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option("--identity-command", session.identity_command,
                  "A command that prints such a file: an agent, a key store")
      ->type_name("CMD")
      ->group(group);
  command
      .add_option("--passphrase-file", session.passphrase_file,
                  "A file whose first line is the passphrase of encrypted files")
      ->type_name("FILE")
      ->group(group);
}

}  // namespace

void add_common_options(CLI::App& command, Session& session) {
  const std::string group = kCommonOptions;
  command.add_flag("--json", session.json, "Print one JSON object with \"schema\": 1")->group(group);
  command.add_flag("-q,--quiet", session.quiet, "No notes, no summaries, no progress")->group(group);
  command.add_flag("--no-progress", session.no_progress, "No progress: neither a bar nor, in logs, lines")
      ->group(group);
  command
      .add_option("--color", session.color, "auto, always or never; NO_COLOR and CLICOLOR_FORCE are honoured")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->group(group);
  command
      .add_option("--expansion", session.expansion,
                  "Read a PyTorch file whose tensors show up to N times its size and 64 MiB (default: 16)")
      ->check(CLI::Range(0.0, 1e18))
      ->type_name("N")
      ->group(group);
  add_key_options(command, session);
  command.add_option("-j,--threads", session.threads, "Threads to work with (default: all cores)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->group(group);
}

void add_inert_option(CLI::App& command, bool& inert) {
  command.add_flag("--inert", inert, "Read past calls in a pickle that could run code; nothing is ever run");
}

void add_io_option(CLI::App& command, Session& session) {
  command
      .add_option("--io", session.io,
                  "How files are read: auto, map, read (by position) or direct (past the page cache, which "
                  "keeps what it holds)")
      ->check(CLI::IsMember(ballast::io_names()))
      ->type_name("WAY");
}

CLI::App& add_bare_command(CLI::App& app, const std::string& name, const std::string& description,
                           const std::string& examples) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer(examples);
  command->set_help_flag("-h,--help", "This page")->group(kCommonOptions);
  return *command;
}

CLI::App& add_command(CLI::App& app, Session& session, const std::string& name,
                      const std::string& description, const std::string& examples) {
  CLI::App& command = add_bare_command(app, name, description, examples);
  add_common_options(command, session);
  return command;
}

}  // namespace tool
