// SPDX-License-Identifier: Apache-2.0
#include "help.h"

#include <fmt/format.h>

#include <algorithm>

#include "ballast/display.h"
#include "text.h"

namespace tool {
namespace {

constexpr std::size_t kLeft = 26;   // where descriptions begin
constexpr std::size_t kWidth = 96;  // where they are broken

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string entry(const std::string& left, const std::string& description) {
  std::string out = "  " + left;
  std::size_t column = out.size();
  if (column + 2 > kLeft) {
    out += '\n';
    column = 0;
  }
  out.append(kLeft - column, ' ');
  column = kLeft;
  for (const std::string& word : words_of(description)) {
    if (column > kLeft && column + word.size() > kWidth) {
      out.pop_back();
      out += '\n' + std::string(kLeft, ' ');
      column = kLeft;
    }
    out += word + ' ';
    column += word.size() + 1;
  }
  while (out.back() == ' ') out.pop_back();
  return out + '\n';
}

std::string repeated(const CLI::Option& option, std::string text) {
  return option.get_expected_max() > 1 ? text + "..." : text;
}

std::string left_of(const CLI::Option& option) {
  if (option.get_positional()) return repeated(option, option.get_name(true));
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  if (names.empty()) names = "    ";
  for (const std::string& name : option.get_lnames()) names += (names == "    " ? "--" : ", --") + name;
  const std::string type = option.get_type_name();
  if (option.get_type_size() > 0)
    names += ' ' + type.substr(0, type.find(':'));  // behind it: CLI11's words for the validators
  return names;
}

std::string usage_of(const CLI::App& app, const std::string& name) {
  std::string out = name;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || option->get_group().empty()) continue;
    const std::string word = repeated(*option, option->get_name(true));
    out += option->get_required() ? ' ' + word : " [" + word + ']';
  }
  return out + (app.get_subcommands({}).empty() ? " [OPTION]..." : " COMMAND [OPTION]... FILE...");
}

std::string options_of(const CLI::App& app) {
  std::string arguments;
  std::string own;
  std::string common;
  for (const CLI::Option* option : app.get_options()) {
    std::string& section = option->get_positional()                ? arguments
                           : option->get_group() == kCommonOptions ? common
                                                                   : own;
    if (!option->get_group().empty()) section += entry(left_of(*option), option->get_description());
  }
  std::string out;
  if (!arguments.empty()) out += "\nArguments:\n" + arguments;
  if (!own.empty()) out += "\nOptions:\n" + own;
  if (!common.empty()) out += fmt::format("\n{}:\n{}", kCommonOptions, common);
  return out;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::string Help::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  const bool is_command = app->get_parent() != nullptr;
  const std::string name = is_command ? "ballast " + app->get_name() : "ballast";
  std::string out = fmt::format("{}: {}\n", name, app->get_description());
  if (!app->get_footer().empty()) out += fmt::format("\nExamples:\n{}\n", app->get_footer());
  out += fmt::format("\nUsage: {}\n", usage_of(*app, name));
  std::string commands;
  for (const CLI::App* command : app->get_subcommands({})) {
    if (!command->get_group().empty()) commands += entry(command->get_name(), command->get_description());
  }
  if (!commands.empty()) out += "\nCommands:\n" + commands;
  out += options_of(*app);
  if (!is_command) {
    out +=
        "\nExit codes: 0 fine, 1 found something (not finite, not clean), 2 could not do it.\n"
        "'ballast help COMMAND' shows a command's page; 'man ballast' has all of them.\n";
  }
  return out;
}

std::string explain(const CLI::ParseError& error, const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string page = chosen.empty()
                               ? "'ballast --help' lists the commands"
                               : fmt::format("'ballast {} --help' shows what it takes", command.get_name());
  const std::string_view what = error.what();
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string extra(what.substr(what.rfind(": ") + 2));
    const std::string word = extra.substr(0, extra.find_first_of("= "));
    if (!word.starts_with('-'))
      return fmt::format("one argument too many: {}; {}", ballast::quoted(extra), page);
    const std::vector<std::string> names = option_names(command);
    const std::string_view near = nearest(word, names);
    return fmt::format("no option {}; {}", ballast::quoted(word),
                       near.empty() ? page : fmt::format("did you mean {}?", near));
  }
  if (required && chosen.empty()) return "a command is missing; " + page;
  if (const std::size_t end = what.rfind(" is required"); required && end != std::string_view::npos) {
    return fmt::format("{} is missing; {}", what.substr(0, end), page);
  }
  return fmt::format("{}; {}", what, page);
}

}  // namespace tool
