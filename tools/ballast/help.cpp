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
      out += '\n' + std::string(kLeft, ' ');
      column = kLeft;
    }
    out += word + ' ';
    column += word.size() + 1;
  }
  out.pop_back();
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
  if (option.get_type_size() > 0) names += ' ' + option.get_type_name();
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
  std::string out;
  for (const std::string& group : app.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group) entries += entry(left_of(*option), option->get_description());
    }
    if (!group.empty() && !entries.empty()) out += fmt::format("\n{}:\n{}", group, entries);
  }
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

std::string Help::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const {
  if (app->get_parent() != nullptr && name.empty()) name = "ballast " + app->get_name();
  if (name.empty()) name = "ballast";
  std::string out = app->get_description() + "\n";
  if (!app->get_footer().empty()) out += fmt::format("\nExamples:\n{}\n", app->get_footer());
  out += fmt::format("\nUsage: {}\n", usage_of(*app, name));
  std::string commands;
  for (const CLI::App* command : app->get_subcommands({})) {
    if (!command->get_group().empty()) commands += entry(command->get_name(), command->get_description());
  }
  if (!commands.empty()) out += "\nCommands:\n" + commands;
  out += options_of(*app);
  if (app->get_parent() == nullptr) {
    out += "\nExit codes: 0 fine, 1 found something (not finite, not clean), 2 could not do it.\n"
           "'ballast help COMMAND' shows a command's page; 'man ballast' has all of them.\n";
  } else {
    out.insert(0, name + ": ");
  }
  return out;
}

std::string explain(const CLI::ParseError& error, const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string page = chosen.empty() ? "'ballast --help' lists the commands"
                                          : fmt::format("'ballast {} --help' shows what it takes", command.get_name());
  if (error.get_name() == "ExtrasError") {
    for (const std::string& extra : command.remaining(true)) {
      const std::string word = extra.substr(0, extra.find('='));
      if (!word.starts_with('-')) return fmt::format("one argument too many: {}; {}", ballast::quoted(extra), page);
      const std::vector<std::string> names = option_names(command);
      const std::string_view near = nearest(word, names);
      return fmt::format("no option {}; {}", ballast::quoted(word), near.empty() ? page : fmt::format("did you mean {}?", near));
    }
  }
  if (error.get_name() == "RequiredError" && chosen.empty()) return "a command is missing; " + page;
  return fmt::format("{}; {}", error.what(), page);
}

}  // namespace tool
