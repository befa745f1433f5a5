// SPDX-License-Identifier: Apache-2.0
// The ballast command: one application, its subcommands, and the one place where a failure becomes a message
// and an exit code.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <memory>
#include <span>

#include "ballast/error.h"
#include "commands.h"
#include "help.h"
#include "session.h"
#include "signals.h"
#include "text.h"

namespace tool {
namespace {

constexpr const char* kExamples =
    "  ballast ls model.safetensors\n"
    "  ballast verify model.safetensors\n"
    "  ballast convert model.pt model.safetensors\n"
    "  ballast convert model.safetensors bf16.safetensors --dtype bf16";

void add_commands(CLI::App& app, Session& session) {
  app.formatter(std::make_shared<Help>());
  app.set_help_flag("-h,--help", "This page");
  app.set_version_flag("-V,--version", std::string("ballast ") + BALLAST_VERSION, "The version");
  app.require_subcommand(1);
  add_ls(app, session);
  add_show(app, session);
  add_convert(app, session);
  add_extract(app, session);
  add_merge(app, session);
  add_shard(app, session);
  add_verify(app, session);
  add_replay(app, session);
  add_diff(app, session);
  add_hash(app, session);
  add_stats(app, session);
  add_scan(app, session);
  add_meta(app, session);
  add_sign(app, session);
  add_keygen(app, session);
  add_onnx(app, session);
  add_view(app, session);
  add_new(app, session);
  add_embed(app, session);
  add_completion(app, session);
  add_help(app, session);
  add_names(app, session);
}

// The first word must be a command; CLI11 alone would only say that a subcommand is missing.
bool knows_first_word(const CLI::App& app, std::span<char*> arguments, Session& session) {
  if (arguments.size() < 2) return true;
  const std::string word = arguments[1];
  if (find_command(app, word) != nullptr || word == "--json") return true;
  if (word.starts_with('-')) {
    if (app.get_option_no_throw(word) != nullptr) return true;
    session.report("invalid-argument", "", no_option(word, app, kOverview));
    return false;
  }
  std::vector<std::string> names = command_names(app);
  names.insert(names.begin(), "--version");
  const std::string_view near = nearest(word, names);
  session.report(
      "invalid-argument", "",
      fmt::format("no command {}; {}", ballast::quoted(word),
                  near.empty() ? kOverview : fmt::format("did you mean {}?", ballast::quoted(near))));
  return false;
}

int parse_and_run(CLI::App& app, Session& session, std::span<char*> arguments) {
  if (!knows_first_word(app, arguments, session)) return kFailed;
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    session.out.write(page_of(chosen.empty() ? app : *chosen.front()));
    return kFine;
  } catch (const CLI::CallForVersion& version) {
    session.out.line(version.what());
    return kFine;
  } catch (const CLI::ParseError& error) {
    session.report("invalid-argument", "", explain(error, app));
    return kFailed;
  }
  session.settle();
  session.take_keys();
  return session.run();
}

int run(std::span<char*> arguments) {
  Session session;
  session.json = std::find(arguments.begin(), arguments.end(), std::string_view("--json")) != arguments.end();
  session.settle();
  int status = kFailed;
  try {
    CLI::App app("look into model weights, check and convert them, without Python", "ballast");
    app.footer(kExamples);
    add_commands(app, session);
    status = parse_and_run(app, session, arguments);
    session.out.flush();
  } catch (...) {
    status = kFailed;
    session.report_current_exception();
    try {
      session.out.flush();
    } catch (...) {  // standard output is what failed: said already
    }
  }
  return status;
}

}  // namespace
}  // namespace tool

// A closed one of the first three would be given to the next file that is opened, and messages would be
// written into that file. What takes its place fails as the closed one did: it is open for the other
// direction.
static void hold_standard_descriptors() {
  for (const int descriptor : {0, 1, 2}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    static_cast<void>(open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY));  // the lowest that is free
  }
}

int main(int count, char** arguments) {
  hold_standard_descriptors();
  std::setlocale(LC_CTYPE, "");
  tool::install_signal_handlers();
  return tool::run({arguments, static_cast<std::size_t>(count)});
}
