// SPDX-License-Identifier: Apache-2.0
// One run of the tool: what every subcommand shares. Results go to `out`, messages to standard error, and the
// outcome is one of three exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/io.h"
#include "json.h"
#include "output.h"
#include "progress.h"
#include "terminal.h"

namespace tool {

enum Exit : int {
  kFine = 0,
  kFound = 1,   ///< differs, not clean, not finite
  kFailed = 2,  ///< could not do it
};

struct Session {
  Output out;
  Terminal stdout_terminal;
  Terminal stderr_terminal;
  bool json = false;
  bool quiet = false;
  bool no_progress = false;
  int threads = 0;
  std::string io;  ///< --io, where a subcommand has it; empty: what is best for that subcommand
  double expansion = ballast::kExpansion;
  std::vector<std::string> identities;  ///< --identity
  std::string identity_command;
  std::string passphrase_file;
  std::string color = "auto";
  std::function<int()> run;  ///< set by the subcommand that was chosen

  /// After the options are known.
  void settle();
  /// What --identity and the like name is for every file of this run.
  void take_keys();
  /// What --io says; `usual` where it says nothing.
  [[nodiscard]] ballast::Io io_or(ballast::Io usual) const;
  /// ballast::open() for a subcommand's FILE: "-" is refused, and a crash of the mapping is about this file
  /// from here on.
  [[nodiscard]] ballast::Checkpoint open(const std::string& path,
                                         const ballast::OpenOptions& options = {}) const;
  /// The same two precautions, for calls that open by themselves.
  void about_to_read(const std::string& path) const;
  [[nodiscard]] ProgressBar progress(std::string_view verb, const std::string& path) const;

  void note(std::string_view text) const;  ///< "note: …", not with --quiet
  void warn(std::string_view text) const;  ///< "ballast: warning: …", always
  /// Says what went wrong: on standard error, and with --json as an object on standard output too.
  void report(std::string_view code, std::string_view where, std::string_view message);
  /// The exception being handled, whatever it is.
  void report_current_exception();
  [[nodiscard]] Json current_exception_as_json() const;
};

/// Runs `work` for every file: with --json a single file gives its object, several give
/// {"schema":1,"files":[…]}. A file that fails is reported and the next one taken. Returns the worst exit
/// code. `work` adds members to the object it is given (JSON) or prints (text).
int for_each_file(Session& session, const std::vector<std::string>& files,
                  const std::function<int(const std::string& path, JsonStream& json)>& work);

/// --json, --color, --quiet, --threads, --no-progress, --identity: the options every subcommand has.
void add_common_options(CLI::App& command, Session& session);
/// --io: for subcommands that read the values of tensors.
void add_io_option(CLI::App& command, Session& session);
/// What an output that is there already is told about; the library cannot know of -f.
inline constexpr const char* kOverwriteHint = "is there already; -f overwrites it";

/// --inert, for commands that read pickles.
void add_inert_option(CLI::App& command, bool& inert);
/// A subcommand with its description and the examples its help begins with; `bare` without the common
/// options.
CLI::App& add_bare_command(CLI::App& app, const std::string& name, const std::string& description,
                           const std::string& examples);
CLI::App& add_command(CLI::App& app, Session& session, const std::string& name,
                      const std::string& description, const std::string& examples);

}  // namespace tool
