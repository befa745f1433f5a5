# SPDX-License-Identifier: Apache-2.0
"""Exit codes, streams, colour, broken pipes, help, man page, and files that are not what they seem."""
import gzip
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from cli_testing import BALLAST, SOURCE, CliTest, environment, floats, safetensors

COMMANDS = re.findall(r"^  (\w+)  ", subprocess.run([BALLAST, "--help"], capture_output=True, text=True).stdout.split("Commands:")[1].split("Options:")[0], re.M)


class WrongFiles(CliTest):
    def refusal(self, name, content):
        path = self.file(name, content)
        _, err = self.run_tool("ls", path, code=2)
        self.assertTrue(err.startswith(f"ballast: {path}"), err)
        self.assertEqual(len(err.splitlines()), 1, err)
        error = self.run_json("ls", path, code=2)["error"]
        self.assertEqual(sorted(error), ["code", "message", "where"])
        return err

    def test_each_is_named_for_what_it_is(self):
        self.assertIn("HTML", self.refusal("a.safetensors", b"<!DOCTYPE html><html><body>404</body></html>"))
        self.assertIn("LFS", self.refusal("b.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"))
        self.assertIn("gzip", self.refusal("c.safetensors", gzip.compress(b"x" * 100)))
        self.assertIn("empty", self.refusal("d.safetensors", b""))
        for name in ("e.gguf", "e.bin", "e.safetensors"):
            self.assertIn("is a GGUF file", self.refusal(name, b"GGUF\3\0\0\0" + bytes(64)))

    def test_a_cut_file_has_both_numbers(self):
        whole = safetensors([("w", "F32", [1000], floats(*[1.0] * 1000))])
        cut = whole[:-1234]
        err = self.refusal("cut.safetensors", cut)
        promised, there = len(whole), len(cut)
        data = promised - 4000
        self.assertTrue(any(str(n) in err for n in (promised, 4000)), err)
        self.assertTrue(any(str(n) in err for n in (there, there - data)), err)
        self.assertIn("[truncated]", err)

    def test_folders_pipes_and_standard_input_are_refused_in_words(self):
        self.assertIn("folder", self.run_tool("ls", str(self.folder), code=2)[1])
        os.mkfifo(self.path("pipe"))
        self.assertIn("pipe", self.run_tool("ls", self.path("pipe"), code=2)[1])
        self.assertIn("standard input", self.run_tool("ls", "-", code=2)[1])
        self.assertIn("No such file", self.run_tool("verify", self.path("absent"), code=2)[1])


class Streams(CliTest):
    def many(self):
        return self.file("many.safetensors", safetensors([(f"tensor.with.a.long.name.{i}.weight", "U8", [1], b"\1") for i in range(30_000)]))

    def test_a_closed_pipe_ends_the_tool_quietly(self):
        process = subprocess.Popen([BALLAST, "ls", self.many()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(60), -13)
        self.assertEqual(err, b"")

    def test_a_pipe_that_does_not_wait_gets_everything(self):
        path = self.many()
        whole = self.run_tool("ls", path)[0]
        reader, writer = os.pipe()
        os.set_blocking(writer, False)  # for everybody who has it
        process = subprocess.Popen([BALLAST, "ls", path], stdout=writer, stderr=subprocess.PIPE, env=environment())
        os.close(writer)
        time.sleep(0.2)  # it is full by then
        with open(reader, encoding="utf-8") as rows:
            self.assertEqual(rows.read(), whole)
        self.assertEqual(process.communicate()[1], b"")
        self.assertEqual(process.returncode, 0)

    def test_a_full_disk_behind_standard_output_is_an_error(self):
        with open("/dev/full", "wb") as full:
            _, err = self.run_tool("ls", self.small(), stdout=full, code=2)
        self.assertIn("standard output", err)

    def test_what_is_written_is_the_same_whichever_of_the_three_streams_are_closed(self):
        one, many = self.file("one.safetensors", safetensors([("w", "F32", [60_000], floats(*[1e9] * 60_000))])), self.many()
        orders = [["convert", one, "OUT.safetensors", "--dtype", "f16"], ["convert", many, "OUT.pt"], ["convert", many, "OUT.safetensors", "--json"],
                  ["convert", one, "OUT.npz", "--debug-keys"], ["extract", one, "w[:9]", "-o", "OUT.npy"], ["meta", one, "set", "a=b", "-o", "OUT.safetensors"],
                  ["shard", one, "OUT.safetensors", "--shard-size", "100KB"], ["merge", one, "OUT.safetensors"], ["new", one, "-o", "OUT.h"]]
        for order in orders:
            expected = None
            for closed in [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
                folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                words = [str(folder / word) if word.startswith("OUT") else word for word in order]
                subprocess.run([BALLAST, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=environment(BALLAST_PROGRESS="0"), preexec_fn=lambda closed=closed: [os.close(number) for number in closed], timeout=120)
                written = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
                expected = expected or written
                self.assertTrue(expected, order)
                self.assertEqual(written, expected, f"{order} with {closed} closed")

    def test_no_colour_in_a_pipe_and_on_a_terminal_as_asked(self):
        path = self.small()
        self.assertNotIn("\x1b", self.run_tool("ls", path)[0])
        self.assertIn("\x1b[", self.run_tool("ls", path, "--color", "always")[0])
        self.assertIn("\x1b[", self.run_tool("ls", path, env=environment(CLICOLOR_FORCE="1"))[0])
        self.assertNotIn("\x1b", self.run_tool("ls", path, env=environment(CLICOLOR_FORCE="1", NO_COLOR="1"))[0])
        self.assertIn("\x1b[", self.run_on_terminal("ls", path)[0])
        self.assertNotIn("\x1b", self.run_on_terminal("ls", path, env=environment(NO_COLOR="1"))[0])
        self.assertNotIn("\x1b", self.run_on_terminal("ls", path, env=environment(TERM="dumb"))[0])
        self.assertNotIn("\x1b", self.run_on_terminal("ls", path, "--color=never")[0])

    def test_json_never_has_colour(self):
        out, _ = self.run_tool("ls", self.small(), "--json", "--color", "always")
        json.loads(out)
        self.assertNotIn("\x1b", out)


class CommandLine(CliTest):
    def test_misspelt_commands_and_options_get_a_suggestion(self):
        self.assertIn('did you mean "convert"', self.run_tool("covnert", code=2)[1])
        self.assertIn("did you mean --json", self.run_tool("ls", "--jsno", self.small(), code=2)[1])
        self.assertIn("FILE is missing", self.run_tool("ls", code=2)[1])
        self.assertIn("ballast --help", self.run_tool(code=2)[1])

    def test_wrong_words_before_and_after_the_command_are_named(self):
        self.assertIn("did you mean --version?", self.run_tool("--verison", code=2)[1])
        self.assertIn('did you mean "--version"?', self.run_tool("version", code=2)[1])
        self.assertIn('too many arguments: "c d"', self.run_tool("convert", "a", "b", "c", "d", code=2)[1])
        self.assertIn("red is none of auto, always, never", self.run_tool("ls", "x", "--color", "red", code=2)[1])
        self.assertIn("OUT is missing", self.run_tool("merge", self.small(), code=2)[1])

    def test_help_alone_is_the_overview(self):
        self.assertEqual(self.run_tool("help")[0], self.run_tool("--help")[0])

    def test_an_option_that_must_be_there_is_in_the_usage(self):
        self.assertIn("Usage: ballast embed RECORD --symbol NAME [OPTION]...", self.run_tool("embed", "--help")[0])
        self.assertIn("Usage: ballast merge IN... OUT [OPTION]...", self.run_tool("merge", "--help")[0])

    def test_an_output_that_is_there_is_kept_and_the_message_says_how_to_overwrite_it(self):
        path, there = self.small(), self.file("there.safetensors", b"precious")
        os.mkdir(self.path("shards"))
        self.run_tool("shard", path, self.path("shards"))
        record = self.path("r.record")
        self.run_tool("convert", path, record, "--receipt", self.path("r.json"))
        for command in (["convert", path, there], ["merge", path, there], ["new", path, "-o", there], ["meta", path, "set", "a=b", "-o", there],
                        ["shard", path, self.path("shards")], ["convert", path, self.path("n.record"), "--receipt", self.path("r.json")]):
            err = self.run_tool(*command, code=2)[1]
            self.assertRegex(err, r"is there already; -f overwrites it \[already-exists\]", command)
        for command in (["convert", path], ["merge", path], ["new", path, "-o"]):
            self.assertIn("is a folder; name a file in it", self.run_tool(*command, self.path("shards"), "-f", code=2)[1])
        self.assertIn("make it first", self.run_tool("convert", path, self.path("absent/x.safetensors"), code=2)[1])
        self.assertIn("--to", self.run_tool("convert", path, self.path("x.unknown"), code=2)[1])
        self.assertIn("ballast::onnx::save", self.run_tool("convert", path, self.path("x.onnx"), code=2)[1])
        self.assertIn("ballast convert", self.run_tool("embed", path, "--symbol", "w", code=2)[1])

    def test_a_wrong_command_line_is_json_too_when_asked(self):
        out, _ = self.run_tool("ls", "--json", "--nonsense", code=2)
        self.assertEqual(json.loads(out)["error"]["code"], "invalid-argument")

    def test_there_is_one_version(self):
        version = re.search(r"project\(ballast VERSION (\d+\.\d+\.\d+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
        for flag in ("--version", "-V"):
            self.assertEqual(self.run_tool(flag)[0], f"ballast {version}\n")
        self.assertIn(f'"Ballast {version}"', (SOURCE / "docs/man/ballast.1").read_text().splitlines()[1])
        self.assertEqual(re.search(r"^## (?!Unreleased)(\S+)", (SOURCE / "CHANGELOG.md").read_text(), re.M).group(1), version)
        for page in ("docs/proof.md", "docs/formats/record.md", "include/ballast/convert.h"):
            self.assertEqual(set(re.findall(r"ballast (\d+\.\d+\.\d+)", (SOURCE / page).read_text())), {version}, page)
        parts = version.split(".")
        for page in ("README.md", "tests/package/CMakeLists.txt"):
            self.assertIn(f"find_package(ballast {parts[0]}.{parts[1]} REQUIRED)", (SOURCE / page).read_text())

    def test_every_command_has_a_page_that_begins_with_an_example(self):
        self.assertGreaterEqual(len(COMMANDS), 8)
        for command in COMMANDS:
            page, err = self.run_tool(command, "--help")
            self.assertEqual(err, "")
            self.assertLess(page.index("Examples:"), page.index("Usage:"), command)
            self.assertIn(f"ballast {command}", page.split("Usage:")[0])
            self.assertEqual(page, self.run_tool("help", command)[0])
            self.assertTrue(all(len(line) <= 100 for line in page.splitlines()), command)

    def test_the_man_page_knows_every_command_and_option(self):
        manual = (SOURCE / "docs/man/ballast.1").read_text().replace("\\-", "-")
        for command in COMMANDS:
            self.assertRegex(manual, rf'(?m)^\.SS "?{command}\b', command)
            for option in re.findall(r"--[a-z-]+", self.run_tool(command, "--help")[0].split("Usage:")[1]):
                self.assertIn(option, manual, command)


if __name__ == "__main__":
    unittest.main()
