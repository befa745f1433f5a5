# SPDX-License-Identifier: Apache-2.0
"""Tab in real shells on a terminal: names from a file are offered, quoted, and never run, expanded or globbed.

Each round types a line, Tab and Enter. A stand-in for the command writes down its arguments: they must be the name, byte for byte, however it is made up,
and the file that every hostile piece tries to make must not be there. BALLAST_TEST_ROUNDS asks for more names than the few that CI tries.
"""
import itertools
import os
import random
import select
import shutil
import subprocess
import unittest

from cli_testing import BALLAST, CliTest, environment, floats, safetensors

ROUNDS = int(os.environ.get("BALLAST_TEST_ROUNDS", "16"))
CANARY = "canary"
RUNS = [f"$(touch {CANARY})", f"`touch {CANARY}`", f";touch {CANARY};", f"|touch {CANARY}", f"&touch {CANARY}&", f"<(touch {CANARY})", f">{CANARY}",
        f"$((a[$(touch {CANARY})]))", f"${{x:-$(touch {CANARY})}}", f"'$(touch {CANARY})'", f"\"$(touch {CANARY})\"", f"\\$(touch {CANARY})",
        f"(#qe:touch {CANARY}:)", f"(touch {CANARY})", f"*(e:'touch {CANARY}':)", f"{{a,$(touch {CANARY})}}", f"a[$(touch {CANARY})]"]
PLAIN = ["'", '"', "*", "?", "[a-z]", "{a,b}", "\\", "\\\\", " ", "  ", "~", "~root", "~/x", "!", "!!", "!-1", ";", "&", "&&", "|", "<", "(", ")", "$", "$HOME",
         "${HOME}", "$'\\x41'", "\\n", "=", ":", "a:b:c", "a=b=c", "::", "-", "--json", "#", "^", "%", "@", "%s", "/", "a/b", "..", "é", "漢字", "e\u0301", "😀", ",", "+"]
# Not shown, since they cannot be typed; what would be shown could draw on the terminal.
HIDDEN = ["\n", "\t", "\r", "\x1b[31m", "\x1b]0;title\x07", "\x7f", "\x01", "\u202e", "\u200b", f"\n$(touch {CANARY})\n"]
SETUP = {
    "bash": "PS1='READY>' PS2='MORE>'; bind 'set enable-bracketed-paste off' 'set bell-style none'; unset HISTFILE; source ./script\n",
    "zsh": "PS1='READY>' PS2='MORE>'; unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null; fpath=($PWD/script.d $fpath); autoload -Uz compinit; compinit -D -u\n",
    "fish": "set -g fish_greeting; function fish_prompt; printf 'READY>'; end; source ./script\n",
}
START = {"bash": ["bash", "--noprofile", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"], "fish": ["fish", "--no-config", "-i"]}
STAND_IN = """#!/bin/sh
[ "$1" = __names ] && exec {tool} "$@"
printf '%s\\0' "$@" > "$RECORD.new"
mv "$RECORD.new" "$RECORD"
echo RECORDED
"""


def single_quoted(text, shell):
    if shell == "fish":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "'\\''") + "'"


def escaped(text):
    return "".join(c if c.isalnum() or c in ":=/._-" or ord(c) > 127 else "\\" + c for c in text)


def names(pieces, count, seed):
    """Each piece alone, before, behind and between letters; then mixtures of them."""
    shapes = [shape for piece in pieces for shape in (f"w{piece}z", f"{piece}z", f"w{piece}", piece)]
    rng = random.Random(seed)
    mixed = ["w" + "".join(rng.choice(pieces) for _ in range(rng.randint(2, 5))) for _ in range(count)]
    return [*dict.fromkeys(rng.sample(shapes, min(count, len(shapes))) + mixed)]


class NamesOnTheLine(CliTest):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        self.record = self.folder / "record"
        stand_in = self.folder / "bin" / "ballast"
        stand_in.write_text(STAND_IN.format(tool=single_quoted(os.path.abspath(BALLAST), "sh")))
        stand_in.chmod(0o755)
        (self.folder / "home").mkdir()
        (self.folder / "work").mkdir()
        self.environment = environment(PATH=f"{self.folder}/bin:{os.environ['PATH']}", HOME=str(self.folder / "home"), RECORD=str(self.record), INPUTRC="/dev/null")

    def begin(self, shell):
        import fcntl
        import struct
        import termios

        self.shell = shell
        script = self.run_tool("completion", shell)[0]
        work = self.folder / "work"
        if shell == "zsh":
            (work / "script.d").mkdir(exist_ok=True)
            (work / "script.d" / "_ballast").write_text(script)
        else:
            (work / "script").write_text(script)
        self.terminal, side = self.open_terminal()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 2000, 0, 0))
        self.process = subprocess.Popen(START[shell], stdin=side, stdout=side, stderr=side, env=self.environment, cwd=work, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(side)
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.type(SETUP[shell])
        self.type("ballast ready\n")
        self.recorded("setup")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def recorded(self, what):
        """The arguments the command was called with, and what the terminal showed until then."""
        seen = b""
        while b"READY>" not in seen.partition(b"RECORDED\r\n")[2]:
            ready, _, _ = select.select([self.terminal], [], [], 60)
            self.assertTrue(ready, f"{self.shell}: {what!r}: {seen!r}")
            seen += os.read(self.terminal, 65536)
        words = self.record.read_bytes().decode().split("\0")[:-1]
        self.record.unlink()
        self.assertFalse(any(self.folder.glob(f"**/{CANARY}")), f"{self.shell}: {what!r} ran a command")
        return words, seen

    def write(self, file, *names_in_it):
        self.file(f"work/{file}", safetensors([(name, "F32", [1], floats(1)) for name in names_in_it]))

    def after_tab(self, line):
        self.type(line + "\t\n")
        return self.recorded(line)

    def check(self, line, wanted):
        words, _ = self.after_tab(line)
        self.assertEqual(words, wanted, f"{self.shell}: {line!r}")

    def each_name_is_offered_as_it_is(self, shell):
        self.begin(shell)
        for number, name in enumerate(names(RUNS + PLAIN, ROUNDS, 17)):
            if shell == "fish" and name.startswith(("-", ".", "~")):
                continue  # fish offers those behind a dash or dot alone, and would not quote a tilde
            file = f"{number}.safetensors"
            self.write(file, name)
            places = [(f"ballast show {file} ", ["show", file, name]), (f"ballast ls {file} --include ", ["ls", file, "--include", name]),
                      (f"ballast ls {file} --include=", ["ls", file, f"--include={name}"])]
            half = name[: (len(name) + 1) // 2]
            if not name.startswith(("-", "~") + ("=",) * (shell == "zsh")):  # zsh itself completes commands behind a first =
                places.append((f"ballast show {file} {escaped(half)}", ["show", file, name]))
                if shell == "bash":
                    places.append((f"ballast show {file} {single_quoted(half, shell)[:-1]}", ["show", file, name]))
                    places.append((f'ballast show {file} "', ["show", file, name]))
            line, wanted = places[number % len(places)]
            self.check(line, wanted)

    def what_cannot_be_typed_is_not_offered(self, shell):
        self.begin(shell)
        for number, (piece, shape) in enumerate(itertools.product(HIDDEN, ("w{}z", "{}", "$(touch canary){}"))):
            name = shape.format(piece)
            self.write(f"{number}.safetensors", name)
            words, seen = self.after_tab(f"ballast show {number}.safetensors w")
            self.assertEqual(words, ["show", f"{number}.safetensors", "w"])
            self.assertNotIn(b"\x1b[31m", seen)
            self.assertNotIn(b"\x1b]0;title", seen)

    def a_list_of_all_of_them_runs_nothing(self, shell):
        self.begin(shell)
        everything = [f"w{piece}" for piece in RUNS + PLAIN + HIDDEN]
        self.write("all.safetensors", *dict.fromkeys(everything))
        self.type("ballast show all.safetensors w\t\t\n\n")  # what is chosen from the list differs from shell to shell
        words, _ = self.recorded("a list")
        self.assertEqual(words[:2], ["show", "all.safetensors"])

    def files_of_any_name_are_asked(self, shell):
        self.begin(shell)
        for name in names(RUNS + PLAIN, ROUNDS // 2, 4):
            file = name.replace("/", "_")
            if file.startswith(("-", "~")) or file in (".", ".."):
                continue
            self.write(file, "weight")
            for typed in (single_quoted(file, shell), escaped(file)):
                words, _ = self.after_tab(f"ballast show {typed} weigh")
                # bash takes some of these for the end of a command, quoted or not, and asks nobody.
                allowed = ["weight", "weigh"] if shell == "bash" and set(file) & set(";|&{(`") else ["weight"]
                self.assertIn(words, [["show", file, word] for word in allowed], f"{shell}: {typed}")

    def test_bash_inserts_each_name_quoted(self):
        self.each_name_is_offered_as_it_is("bash")

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh_inserts_each_name_quoted(self):
        self.each_name_is_offered_as_it_is("zsh")

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish_inserts_each_name_quoted(self):
        self.each_name_is_offered_as_it_is("fish")

    def test_no_shell_offers_what_cannot_be_typed(self):
        for shell in filter(shutil.which, START):
            self.what_cannot_be_typed_is_not_offered(shell)

    def test_listing_names_runs_nothing_in_any_shell(self):
        for shell in filter(shutil.which, START):
            self.a_list_of_all_of_them_runs_nothing(shell)

    def test_the_file_on_the_line_may_have_any_name_in_any_shell(self):
        for shell in filter(shutil.which, START):
            self.files_of_any_name_are_asked(shell)


if __name__ == "__main__":
    unittest.main()
