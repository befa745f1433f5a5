// SPDX-License-Identifier: Apache-2.0
// ballast completion SHELL: scripts made from the commands and options there really are. They complete the
// names of tensors too, by asking the hidden command __names for those of the file already on the line.
#include <algorithm>

#include "ballast/display.h"
#include "ballast/io.h"
#include "commands.h"
#include "help.h"

namespace tool {
namespace {

struct Flag {
  std::string word;  // "--dtype" or "-f"
  bool takes_value;
  std::string description;
};

std::vector<Flag> flags_of(const CLI::App& command) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : command.get_options()) {
    const bool value = option->get_items_expected_max() > 0;
    for (const std::string& name : option->get_lnames())
      flags.push_back({"--" + name, value, option->get_description()});
    for (const std::string& name : option->get_snames())
      flags.push_back({"-" + name, value, option->get_description()});
  }
  return flags;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// Values known in advance; empty where a file or free text is meant.
std::string values_of(const std::string& flag) {
  if (flag == "--color") return "auto always never";
  if (flag == "--sort") return "file name size";
  if (flag == "--dtype") return "f32 f16 bf16 f64 f8_e4m3 f8_e5m2";
  if (flag == "--quantize") return "int8";
  if (flag == "--io") return joined(ballast::io_names());
  if (flag == "--to") return fmt::format("{}", fmt::join(ballast::writable_formats(), " "));
  return "";
}

bool takes_name(const std::string& flag) {
  return flag == "--include" || flag == "--exclude" || flag == "--root" || flag == "--rename" ||
         flag == "--keep-dtype" || flag == "--reindex";
}

bool takes_file(const std::string& flag) {
  return flag == "--output" || flag == "-o" || flag == "--receipt" || flag == "--rules";
}

std::vector<std::string> value_flags(const CLI::App& app) {
  std::vector<std::string> words;
  for (const std::string& name : command_names(app)) {
    for (const Flag& flag : flags_of(*app.get_subcommand(name))) {
      if (flag.takes_value && std::find(words.begin(), words.end(), flag.word) == words.end())
        words.push_back(flag.word);
    }
  }
  return words;
}

void print_bash(Output& out, const CLI::App& app) {
  out.write(
      "# bash completion for ballast: source it, or put it into bash-completion's folder as \"ballast\".\n"
      "_ballast() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} "
      "file='' options='' i\n");
  out.print(
      "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W '{} --help --version' -- \"$word\")); return; "
      "fi\n",
      joined(command_names(app)));
  out.write("  case $command in\n");
  for (const std::string& name : command_names(app)) {
    std::vector<std::string> words;
    for (const Flag& flag : flags_of(*app.get_subcommand(name))) words.push_back(flag.word);
    out.print("    {}) options='{}' ;;\n", name, joined(words));
  }
  out.write("  esac\n  case $previous in\n");
  for (const std::string& flag : value_flags(app)) {
    if (!values_of(flag).empty())
      out.print("    {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n", flag, values_of(flag));
  }
  out.write(
      "  esac\n"
      "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "    if [[ ${COMP_WORDS[i]} != -* && -e ${COMP_WORDS[i]/#\\~/$HOME} ]]; then "
      "file=${COMP_WORDS[i]/#\\~/$HOME}; break; fi\n"
      "  done\n"
      "  local IFS=$'\\n'\n"
      "  case $previous in\n"
      "    --include|--exclude|--root|--rename|--keep-dtype|--reindex)\n"
      "      [[ -n $file ]] && COMPREPLY=($(compgen -W \"$(ballast __names \"$file\" 2>/dev/null)\" -- "
      "\"$word\")); return ;;\n"
      "  esac\n"
      "  if [[ $word == -* ]]; then IFS=' ' read -ra options <<< \"$options\"; COMPREPLY=($(compgen -W "
      "\"${options[*]}\" -- \"$word\")); return; fi\n"
      "  case $command in\n");
  out.print("    help) COMPREPLY=($(compgen -W \"${{_ballast_commands[*]}}\" -- \"$word\")) ;;\n");
  out.write(
      "    completion) COMPREPLY=($(compgen -W $'bash\\nzsh\\nfish' -- \"$word\")) ;;\n"
      "    show) if [[ -n $file ]]; then COMPREPLY=($(compgen -W \"$(ballast __names \"$file\" "
      "2>/dev/null)\" -- \"$word\")); else COMPREPLY=($(compgen -f -- \"$word\")); fi ;;\n"
      "    meta) if [[ -n $file ]]; then COMPREPLY=($(compgen -W $'get\\nset\\nrm' -- \"$word\")); else "
      "COMPREPLY=($(compgen -f -- \"$word\")); fi ;;\n"
      "    onnx) if ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W info -- \"$word\")); else "
      "COMPREPLY=($(compgen -f -- \"$word\")); fi ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
      "  esac\n"
      "}\n");
  out.print("_ballast_commands=({})\n", joined(command_names(app)));
  out.write("complete -o filenames -F _ballast ballast\n");
}

// As a word in single quotes, with a backslash before each of `special`.
std::string in_quotes(std::string_view text, std::string_view special, std::string_view quote) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
      continue;
    }
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string for_zsh(std::string_view text) {
  return in_quotes(text, "[]", "'\\''");
}
std::string for_fish(std::string_view text) {
  return in_quotes(text, "\\", "\\'");
}

// What zsh's _arguments is told about a flag: "--dtype=[…]:value:(f32 f16)". After "=" and "+" the value may
// stand in the same word.
std::string zsh_spec(const Flag& flag) {
  const bool is_long = flag.word.starts_with("--");
  std::string action;
  if (flag.takes_value)
    action = values_of(flag.word).empty() ? ":value:" : fmt::format(":value:({})", values_of(flag.word));
  if (takes_name(flag.word)) action = ":name:_ballast_names";
  if (takes_file(flag.word)) action = ":file:_files";
  return fmt::format("*{}{}[{}]{}", flag.word, flag.takes_value ? (is_long ? "=" : "+") : "",
                     for_zsh(flag.description), action);
}

void print_zsh(Output& out, const CLI::App& app) {
  out.write(
      "#compdef ballast\n"
      "# zsh completion for ballast: put it into a folder of $fpath as \"_ballast\".\n"
      "_ballast_names() {\n"
      "  local file word\n"
      "  for word in ${(Q)words[2,-1]}; do [[ $word != -* && -e ${~word} ]] && file=${~word} && break; done\n"
      "  [[ -n $file ]] && compadd -- ${(f)\"$(ballast __names \"$file\" 2>/dev/null)\"}\n"
      "}\n"
      "_ballast() {\n"
      "  local -a commands\n"
      "  commands=(\n");
  for (const std::string& name : command_names(app))
    out.print("    '{}:{}'\n", name, for_zsh(app.get_subcommand(name)->get_description()));
  out.write(
      "  )\n"
      "  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
      "  local command=$words[2]\n"
      "  shift words; ((CURRENT--))\n"
      "  case $command in\n");
  for (const std::string& name : command_names(app)) {
    out.print("    {})\n      _arguments \\\n", name);
    for (const Flag& flag : flags_of(*app.get_subcommand(name)))
      out.print("        '{}' \\\n", zsh_spec(flag));
    if (name == "show")
      out.write("        '1:file:_files' '2:path:_ballast_names'\n");
    else if (name == "meta")
      out.write("        '1:file:_files' '2:action:(get set rm)' '*:argument:'\n");
    else if (name == "onnx")
      out.write("        '1:action:(info)' '*:file:_files'\n");
    else if (name == "completion")
      out.write("        '1:shell:(bash zsh fish)'\n");
    else if (name == "help")
      out.print("        '1:command:({})'\n", joined(command_names(app)));
    else
      out.write("        '*:file:_files'\n");
    out.write("      ;;\n");
  }
  out.write("  esac\n}\n_ballast \"$@\"\n");
}

void print_fish(Output& out, const CLI::App& app) {
  out.write(
      "# fish completion for ballast\n"
      "function __ballast_names\n"
      "  for word in (commandline -opc)[3..-1]\n"
      "    if test -e \"$word\"\n"
      "      ballast __names $word 2>/dev/null\n"
      "      return\n"
      "    end\n"
      "  end\n"
      "end\n");
  for (const std::string& name : command_names(app)) {
    out.print("complete -c ballast -n __fish_use_subcommand -f -a {} -d '{}'\n", name,
              for_fish(app.get_subcommand(name)->get_description()));
    for (const Flag& flag : flags_of(*app.get_subcommand(name))) {
      const bool is_long = flag.word.starts_with("--");
      std::string line =
          fmt::format("complete -c ballast -n '__fish_seen_subcommand_from {}' {} {} -d '{}'", name,
                      is_long ? "-l" : "-s", flag.word.substr(is_long ? 2 : 1), for_fish(flag.description));
      if (flag.takes_value) line += " -r";  // a value must follow
      if (!values_of(flag.word).empty()) line += fmt::format(" -f -a '{}'", values_of(flag.word));
      if (takes_name(flag.word)) line += " -f -a '(__ballast_names)'";
      out.line(line);
    }
  }
  out.write(
      "complete -c ballast -n '__fish_seen_subcommand_from show' -a '(__ballast_names)'\n"
      "complete -c ballast -n '__fish_seen_subcommand_from meta' -a 'get set rm'\n"
      "complete -c ballast -n '__fish_seen_subcommand_from onnx' -a info\n"
      "complete -c ballast -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
  out.print("complete -c ballast -n '__fish_seen_subcommand_from help' -f -a '{}'\n",
            joined(command_names(app)));
}

}  // namespace

void add_completion(CLI::App& app, Session& session) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command = add_bare_command(app, "completion", "print the completion script of a shell",
                                       "  source <(ballast completion bash)\n"
                                       "  ballast completion fish > ~/.config/fish/completions/ballast.fish");
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command.callback([&app, &session, shell] {
    session.run = [&app, &session, shell] {
      if (*shell == "bash")
        print_bash(session.out, app);
      else if (*shell == "zsh")
        print_zsh(session.out, app);
      else
        print_fish(session.out, app);
      return static_cast<int>(kFine);
    };
  });
}

void add_names(CLI::App& app, Session& session) {
  auto file = std::make_shared<std::string>();
  CLI::App& command = add_command(app, session, "__names", "the names of a file's tensors, for completion",
                                  "  ballast __names model.safetensors");
  command.group("");
  command.add_option("FILE", *file, "A checkpoint")->required();
  command.callback([&session, file] {
    session.run = [&session, file] {
      const ballast::Checkpoint checkpoint = session.open(*file);
      for (const ballast::Entry entry : checkpoint) {
        // A name that cannot be shown as it is cannot be typed either.
        if (ballast::display(entry.name, entry.name.size()) == entry.name) session.out.line(entry.name);
      }
      return static_cast<int>(kFine);
    };
  });
}

}  // namespace tool
