// SPDX-License-Identifier: Apache-2.0
#include "help.h"

#include <fmt/format.h>

#include <algorithm>

#include "ballast/error.h"
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

// "FILE", "FILE...", or what the command says itself.
std::string positional_text(const CLI::Option& option) {
  if (!option.get_option_text().empty()) return option.get_option_text();
  return option.get_expected_max() > 1 ? option.get_name(true) + "..." : option.get_name(true);
}

std::string left_of(const CLI::Option& option) {
  if (option.get_positional()) return positional_text(option);
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
    if (option->get_group().empty()) continue;
    if (!option->get_positional()) {
      if (option->get_required()) out += ' ' + left_of(*option).substr(std::string_view("    ").size());
      continue;
    }
    const std::string word = positional_text(*option);
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

// "--color: red not in {auto,always}" → "--color: red is none of auto, always"
std::string plain_words(std::string text) {
  constexpr std::string_view kNotIn = " not in {";
  const std::size_t at = text.find(kNotIn);
  if (at == std::string::npos || !text.ends_with('}')) return text;
  text.pop_back();
  text.replace(at, kNotIn.size(), " is none of ");
  for (std::size_t comma = at; (comma = text.find(',', comma)) != std::string::npos; comma += 2)
    text.replace(comma, 1, ", ");
  return text;
}

}  // namespace

std::string no_option(const std::string& given, const CLI::App& app, const std::string& page) {
  const std::string word = given.substr(0, given.find('='));
  const std::vector<std::string> names = option_names(app);
  const std::string_view near = nearest(word, names);
  return fmt::format("no option {}; {}", ballast::quoted(word),
                     near.empty() ? page : fmt::format("did you mean {}?", near));
}

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
        "\nExit codes: 0 fine, 1 found something (not finite, not clean, different), 2 could not do it.\n"
        "'ballast help COMMAND' shows a command's page; 'man ballast' has all of them.\n";
  }
  return out;
}

std::string page_of(const CLI::App& app) {
  return Help().make_help(&app, "", CLI::AppFormatMode::Normal);
}

std::string explain(const CLI::ParseError& error, const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string page =
      chosen.empty() ? kOverview : fmt::format("'ballast {} --help' shows what it takes", command.get_name());
  const std::string what = plain_words(error.what());
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extras = command.remaining();
    for (const std::string& extra : extras) {
      if (extra.starts_with('-')) return no_option(extra, command, page);
    }
    return fmt::format("too many arguments: {}; {}",
                       ballast::quoted(fmt::format("{}", fmt::join(extras, " "))), page);
  }
  if (required && chosen.empty()) return "a command is missing; " + page;
  if (const std::size_t end = what.rfind(" is required"); required && end != std::string::npos) {
    return fmt::format("{} is missing; {}", what.substr(0, end), page);
  }
  return fmt::format("{}; {}", what, page);
}

}  // namespace tool
