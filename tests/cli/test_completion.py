# SPDX-License-Identifier: Apache-2.0
"""The completion scripts in the shells they are for: what is offered for the last word of a line."""
import os
import re
import select
import shutil
import subprocess
import unittest

from cli_testing import BALLAST, CliTest, environment

# Prints what zsh would offer, and END, instead of offering it. Options and values come in one call of compadd each.
ZSH = r"""
PS1= RPS1= PS2=; unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null; stty -echo
fpath=($PWD $fpath)
autoload -Uz compinit; compinit -D -u
compadd() {
  local -a offered
  if (( ${@[(I)-O]} || ${@[(I)-A]} || ${@[(I)-D]} )); then builtin compadd "$@"; return; fi
  builtin compadd -O offered "$@"
  (( $#offered )) && print -rl -- HIT:${^offered}
}
_capture() { _main_complete; print -r -- END; }
zle -C capture list-choices _capture
bindkey "^I" capture
print -r -- READY
"""


BASH = r"""
compopt() { mapfile -t COMPREPLY < <(compgen -f -- "$current"); }
COMP_LINE=$1 COMP_POINT=${#1} word=${1##*[ :=]}
_ballast ballast "$word"
printf '%s\n' "${COMPREPLY[@]}"
"""


class Completions(CliTest):
    def setUp(self):
        super().setUp()
        self.small()
        self.environment = environment(PATH=os.path.dirname(os.path.abspath(BALLAST)) + ":" + os.environ["PATH"], HOME=str(self.folder))

    def shell(self, name, script, *arguments):
        done = subprocess.run([name, "-c", script, *arguments], capture_output=True, text=True, env=self.environment, cwd=self.folder, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def bash(self, line):
        # Outside of a completion there is no compopt; what it asks for is the names of files.
        script = self.run_tool("completion", "bash")[0] + BASH
        return [word for word in self.shell("bash", script, "bash", line) if word]

    def fish(self, line):
        script = self.run_tool("completion", "fish")[0] + "complete -C $argv[1]\n"
        return [row.split("\t")[0] for row in self.shell("fish", script, line)]

    def zsh(self, line):
        self.file("_ballast", self.run_tool("completion", "zsh")[0].encode())
        self.file("setup", ZSH.encode())
        main, side = self.open_terminal()
        process = subprocess.Popen(["zsh", "-f", "-i"], stdin=side, stdout=side, stderr=side, env=self.environment, cwd=self.folder, start_new_session=True)
        os.close(side)
        self.addCleanup(os.close, main)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.write(main, b"source ./setup\n")
        self.read_until(main, b"READY")
        os.write(main, line.encode() + b"\t")
        return re.findall(r"HIT:(.*)", self.read_until(main, b"END").decode().replace("\r", ""))

    def read_until(self, terminal, word):
        seen = b""
        while word + b"\r\n" not in seen:
            ready, _, _ = select.select([terminal], [], [], 60)
            self.assertTrue(ready, seen)
            seen += os.read(terminal, 65536)
        return seen

    def offers(self, complete):
        self.assertEqual(complete("ballast con"), ["convert"])
        self.assertEqual(complete("ballast convert --dr"), ["--dry-run"])
        self.assertEqual(complete("ballast convert --dtype b"), ["bf16"])
        self.assertEqual(complete("ballast convert --to mpk"), ["mpk", "mpk-gz"])
        self.assertEqual(complete("ballast ls sma"), ["small.safetensors"])
        # --json and --tree take no value.
        self.assertEqual(complete("ballast ls --json --tr"), ["--tree"])
        self.assertEqual(complete("ballast ls --json sma"), ["small.safetensors"])
        self.assertEqual(complete("ballast ls --tree --json sma"), ["small.safetensors"])
        self.assertEqual(sorted(complete("ballast show small.safetensors b.")), ["b.bias", "b.weight"])
        self.assertEqual(sorted(complete("ballast extract small.safetensors b.")), ["b.bias", "b.weight"])
        self.assertEqual(complete("ballast ls --sort s"), ["shape", "size"])
        self.assertEqual(complete("ballast diff --sort re"), ["rel-l2"])
        self.assertEqual(complete("ballast stats --sort s"), ["size"])
        self.assertEqual(complete("ballast ls small.safetensors --include st"), ["steps"])
        self.assertEqual(complete("ballast help ver"), ["verify"])
        self.assertEqual(complete("ballast onnx i"), ["info"])

    def test_scripts_name_every_command_and_option(self):
        commands = self.run_tool("help")[0].split("Commands:")[1].split("\n\n")[0]
        names = re.findall(r"(?m)^  (\w+)", commands)
        self.assertIn("convert", names)
        for shell in ("bash", "zsh", "fish"):
            script, _ = self.run_tool("completion", shell)
            for word in (*names, "dry-run", "include"):
                self.assertIn(word, script, shell)

    def test_bash_offers_commands_options_values_files_and_tensor_names(self):
        self.offers(self.bash)

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh_offers_commands_options_values_files_and_tensor_names(self):
        self.offers(self.zsh)

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish_offers_commands_options_values_files_and_tensor_names(self):
        self.offers(self.fish)


if __name__ == "__main__":
    unittest.main()
