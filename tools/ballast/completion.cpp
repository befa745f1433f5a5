// SPDX-License-Identifier: Apache-2.0
// ballast completion SHELL: scripts made from the commands and options there really are. They complete the
// names of tensors too, by asking the hidden command __names for those of the file already on the line.
#include <algorithm>
#include <cctype>

#include "ballast/error.h"
#include "ballast/io.h"
#include "commands.h"
#include "help.h"
#include "written.h"

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
    if (option->get_group().empty()) continue;  // for tests
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
std::string values_of(const std::string& command, const std::string& flag) {
  if (flag == "--color") return "auto always never";
  if (flag == "--sort" && command == "ls") return "file name dtype shape parameters size offset";
  if (flag == "--sort" && command == "diff") return "file name max rel-l2";
  if (flag == "--sort") return "file name size";
  if (flag == "--dtype") return "f32 f16 bf16 f64 f8_e4m3 f8_e5m2";
  if (flag == "--quantize") return "int8";
  if (flag == "--layout") return "pytorch burn native";
  if (flag == "--adapter") return "pytorch burn native flax keras";
  if (flag == "--io") return joined(ballast::io_names());
  if (flag == "--to") return fmt::format("{}", fmt::join(names_of_formats(), " "));
  return "";
}

bool takes_name(const std::string& flag) {
  return flag == "--include" || flag == "--exclude" || flag == "--root" || flag == "--rename" ||
         flag == "--keep-dtype" || flag == "--reindex";
}

bool takes_file(const std::string& flag) {
  return flag == "--output" || flag == "-o" || flag == "--receipt" || flag == "--rules" || flag == "--like" ||
         flag == "--identity" || flag == "--passphrase-file" || flag == "--signature" || flag == "--key" ||
         flag == "--certificate" || flag == "--cert" || flag == "--certificate-chain" || flag == "--chain" ||
         flag == "--ignore";
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

// What bash's script is made of. A name from a file, and a word of the line, is data in all of it: compared,
// never expanded, evaluated or globbed. The line is split here, since COMP_WORDS is cut at colons and equals
// signs and keeps its quotes.
constexpr const char* kBashSplit =
    R"(# Splits a line into words as the shell would, expanding nothing. `raw` is the last word as it was typed.
_ballast_split() {
  local line=$1 text='' escapes='' open='' c next i=0 start=0
  words=()
  while ((i < ${#line})); do
    c=${line:i:1} next=${line:i+1:1}
    ((++i))
    case $open$c in
      \'\' | \"\") open='' ;;
      \'?) text+=$c ;;
      \"\\) case $next in [\$\`\"\\]) text+=$next; ((++i)) ;; '') ;; *) text+=$c ;; esac ;;
      \"?) text+=$c ;;
      \$\') printf -v escapes %b "$escapes"; text+=$escapes escapes='' open='' ;;
      \$\\) escapes+=$c$next; ((++i)) ;;
      \$?) if [[ $open ]]; then escapes+=$c; else text+=$c; fi ;;
      \' | \") open=$c ;;
      \\) text+=$next; ((++i)) ;;
      [[:blank:]] | $'\n') if ((i - 1 > start)); then words+=("$text"); fi; text='' start=$i ;;
      \$) if [[ $next == \' ]]; then open=$c; ((++i)); else text+=$c; fi ;;
      *) text+=$c ;;
    esac
  done
  words+=("$text") raw=${line:start} quote=$open
}
# Those of the words that begin like the one on the line, without what readline leaves standing there.
_ballast_offer() {
  local candidate
  for candidate; do
    [[ $lead$candidate == "$current"* ]] && candidate=$lead$candidate COMPREPLY+=("${candidate#"$before"}")
  done
}
# Likewise for the names of the file on the line; ballast quotes them, readline inserts them as they are.
_ballast_names() {
  local word file=''
  for word in "${words[@]:2:${#words[@]}-3}"; do
    [[ $word == '~/'* ]] && word=$HOME/${word:2}
    if [[ $word != -* && ( -f $word || -d $word ) ]]; then file=$word; break; fi
  done
  [[ $file ]] || return 1
  mapfile -t COMPREPLY < <(command ballast __names --quote="${quote:-none}" -- "$file" "$current" "$before" "$lead" \
    2>/dev/null </dev/null)
}
)";

// The one flag whose values are not the same in all commands.
void print_sort_of_bash(Output& out, const CLI::App& app) {
  out.write("    --sort) case ${words[1]} in\n");
  for (const std::string& name : command_names(app))
    if (app.get_subcommand(name)->get_option_no_throw("--sort") != nullptr)
      out.print("      {}) _ballast_offer {} ;;\n", name, values_of(name, "--sort"));
  out.write("    esac; return ;;\n");
}

void print_bash(Output& out, const CLI::App& app) {
  out.write(
      "# bash completion for ballast: source it, or put it into bash-completion's folder as \"ballast\".\n");
  out.write(kBashSplit);
  out.write(
      "_ballast() {\n"
      "  local words raw quote current previous before lead='' options=''\n"
      "  COMPREPLY=()\n"
      "  _ballast_split \"${COMP_LINE:0:COMP_POINT}\"\n"
      "  local count=${#words[@]} typed=$raw\n"
      "  current=${words[count-1]} previous=${words[count-2]}\n"
      "  local whole=(\"${words[@]}\") quoted=$quote\n"
      "  # readline replaces its own word, $2, which begins behind the last colon or equals sign.\n"
      "  _ballast_split \"${typed%\"$2\"}\"\n"
      "  before=${words[0]} words=(\"${whole[@]}\") quote=$quoted\n");
  out.print("  if ((count == 2)); then _ballast_offer {} --help --version; return; fi\n",
            joined(command_names(app)));
  out.write(
      "  if [[ $current == --*=* ]]; then previous=${current%%=*} lead=$previous=; fi\n"
      "  case $previous in\n");
  for (const std::string& flag : value_flags(app)) {
    if (flag == "--sort") print_sort_of_bash(out, app);
    const std::string values = flag == "--sort" ? "" : values_of("", flag);
    if (!values.empty()) out.print("    {}) _ballast_offer {}; return ;;\n", flag, values);
    if (takes_name(flag)) out.print("    {}) _ballast_names; return ;;\n", flag);
  }
  out.write("  esac\n  case ${words[1]} in\n");
  for (const std::string& name : command_names(app)) {
    std::vector<std::string> words;
    for (const Flag& flag : flags_of(*app.get_subcommand(name))) words.push_back(flag.word);
    out.print("    {}) options='{}' ;;\n", name, joined(words));
  }
  out.write(
      "  esac\n"
      "  if [[ $current == -* && ! $lead ]]; then IFS=' ' read -ra options <<< \"$options\"; _ballast_offer "
      "\"${options[@]}\"; return; fi\n"
      "  case ${words[1]} in\n");
  out.print("    help) _ballast_offer {}; return ;;\n", joined(command_names(app)));
  out.write(
      "    completion) _ballast_offer bash zsh fish; return ;;\n"
      "    show | extract) _ballast_names && return ;;\n"
      "    meta) if ((count > 3)); then _ballast_offer get set rm; return; fi ;;\n"
      "    onnx) if ((count == 3)); then _ballast_offer info; return; fi ;;\n"
      "  esac\n"
      "  compopt -o default  # files, which readline completes and quotes by itself\n"
      "}\n"
      "complete -F _ballast ballast\n");
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
std::string zsh_spec(const std::string& command, const Flag& flag) {
  const bool is_long = flag.word.starts_with("--");
  std::string action;
  if (flag.takes_value)
    action = values_of(command, flag.word).empty()
                 ? ":value:"
                 : fmt::format(":value:({})", values_of(command, flag.word));
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
      "  local -a names\n"
      "  for word in \"${(@Q)words[2,CURRENT-1]}\"; do\n"
      "    [[ $word == '~/'* ]] && word=$HOME/${word#'~/'}\n"
      "    if [[ $word != -* && ( -f \"$word\" || -d \"$word\" ) ]]; then file=$word; break; fi\n"
      "  done\n"
      "  [[ -n $file ]] || return 1\n"
      "  names=(\"${(@f)$(command ballast __names -- \"$file\" 2>/dev/null </dev/null)}\")\n"
      "  names=(\"${(@)names:#}\")\n"
      "  compadd \"$@\" -a names\n"
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
      out.print("        '{}' \\\n", zsh_spec(name, flag));
    if (name == "show" || name == "extract")
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
      "function __ballast_file\n"
      "  for word in (commandline -opc)[3..-1]\n"
      "    if string match -q -- '~/*' $word\n"
      "      set word $HOME/(string sub -s 3 -- $word | string collect)\n"
      "    end\n"
      "    if not string match -q -- '-*' $word; and begin; test -f \"$word\"; or test -d \"$word\"; end\n"
      "      printf '%s\\n' $word\n"
      "      return 0\n"
      "    end\n"
      "  end\n"
      "  return 1\n"
      "end\n"
      "function __ballast_names\n"
      "  set -l file (__ballast_file | string collect); or return\n"
      "  # fish would not quote a tilde at the beginning.\n"
      "  command ballast __names -- $file 2>/dev/null </dev/null | string match -v '~*'\n"
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
      if (!values_of(name, flag.word).empty()) line += fmt::format(" -f -a '{}'", values_of(name, flag.word));
      if (takes_name(flag.word)) line += " -f -a '(__ballast_names)'";
      out.line(line);
    }
  }
  out.write(
      "complete -c ballast -n '__fish_seen_subcommand_from show extract; and __ballast_file >/dev/null' -f "
      "-a "
      "'(__ballast_names)'\n"
      "complete -c ballast -n '__fish_seen_subcommand_from meta' -a 'get set rm'\n"
      "complete -c ballast -n '__fish_seen_subcommand_from onnx' -a info\n"
      "complete -c ballast -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
  out.print("complete -c ballast -n '__fish_seen_subcommand_from help' -f -a '{}'\n",
            joined(command_names(app)));
}

// As the rest of a word that begins on bash's line, behind an open `quote`; "plain": as it is.
std::string for_bash(std::string_view text, std::string_view quote) {
  if (quote == "plain") return std::string(text);
  std::string out;
  if (quote == "'") out = in_quotes(text, "", "'\\''");
  if (quote == "$") out = in_quotes(text, "\\", "\\'");
  if (quote == "\"") {
    for (const char c : text) {
      if (std::string_view("$`\"\\").find(c) != std::string_view::npos) out += '\\';
      out += c == '!' ? "\"'!'\"" : std::string(1, c);  // the history would not heed a backslash
    }
  }
  if (quote == "none") {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      const bool harmless = byte >= 0x80 || std::isalnum(byte) != 0 ||
                            std::string_view("%+,-./:=@_").find(c) != std::string_view::npos;
      if (!harmless) out += '\\';
      out += c;
    }
  }
  // readline takes such a quote at the beginning for the one on the line, and at the end for the one that
  // closes it.
  if (out.starts_with(quote)) out.insert(0, quote);
  if (out.ends_with(quote)) out += quote;
  return out;
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
  struct Arguments {
    std::string file, word, before, lead, quote = "plain";
  };

  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = add_command(app, session, "__names", "the names of a file's tensors, for completion",
                                  "  ballast __names model.safetensors");
  command.group("");
  command.add_option("FILE", arguments->file, "A checkpoint")->required();
  command.add_option("WORD", arguments->word, "What the word on the line begins with");
  command.add_option("BEFORE", arguments->before, "The part of it that is not printed");
  command.add_option("LEAD", arguments->lead, "What stands before the name in that word, like --include=");
  command.add_option("--quote", arguments->quote, "The quote that is open on bash's line, or none");
  command.callback([&session, arguments] {
    session.run = [&session, arguments] {
      const ballast::Checkpoint checkpoint = session.open(arguments->file);
      for (const ballast::Entry entry : checkpoint) {
        // A name that cannot be shown as it is cannot be typed either.
        if (ballast::display(entry.name, entry.name.size()) != entry.name) continue;
        const std::string word = arguments->lead + std::string(entry.name);
        if (!word.starts_with(arguments->word) || !word.starts_with(arguments->before)) continue;
        session.out.line(for_bash(std::string_view(word).substr(arguments->before.size()), arguments->quote));
      }
      return static_cast<int>(kFine);
    };
  });
}

}  // namespace tool
