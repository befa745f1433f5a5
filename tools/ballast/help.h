// SPDX-License-Identifier: Apache-2.0
// Help pages: what it does, examples, usage, options; and the messages for a command line that is not
// understood.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tool {

inline constexpr const char* kCommonOptions = "Common options";  ///< the group of options every command has

class Help : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

/// The page of the application or of one of its commands. (CLI11's own help() of an application is that of
/// the command that was chosen.)
[[nodiscard]] std::string page_of(const CLI::App& app);

/// The names of all subcommands that are shown.
[[nodiscard]] std::vector<std::string> command_names(const CLI::App& app);
/// The subcommand of that name, hidden ones too; null when there is none.
[[nodiscard]] const CLI::App* find_command(const CLI::App& app, const std::string& name);
inline constexpr const char* kOverview = "'ballast --help' lists the commands";

/// "no option --jsno; did you mean --json?", or `page` when nothing is near.
[[nodiscard]] std::string no_option(const std::string& given, const CLI::App& app, const std::string& page);
/// A sentence about what is wrong with the arguments, with the nearest option or command when something is
/// misspelt.
[[nodiscard]] std::string explain(const CLI::ParseError& error, const CLI::App& app);

}  // namespace tool
