# SPDX-License-Identifier: Apache-2.0
"""ballast hash --check: lists that hash printed, as sha256sum checks its own."""
import json
import os
import unittest

from cli_testing import CliTest, floats, safetensors


class HashCheck(CliTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)  # lists have the paths that hash was given

    def two(self):
        """Two files and the whole list of them; a tensor of the second is called like the first file."""
        self.file("a.safetensors", safetensors([("w", "F32", [2], floats(1, 2)), ("b", "F32", [1], floats(3)), ("\u00fc\n", "U8", [1], b"x")]))
        self.file("b.safetensors", safetensors([("w", "F32", [2], floats(5, 6)), ("a.safetensors", "F32", [1], floats(7))]))
        return self.run_tool("hash", "a.safetensors", "b.safetensors")[0]

    def check(self, text, *options, code=0):
        self.file("list", text.encode())
        return self.run_tool("hash", "--check", "list", *options, code=code)

    def test_a_list_of_files_that_are_as_they_were_is_fine(self):
        whole = self.two()
        out, err = self.check(whole)
        names = [line.split("  ", 1)[1] for line in whole.splitlines()]
        self.assertEqual(out.splitlines(), [f"{name}: OK" for name in names] + ["7 lines: 7 OK, 0 FAILED"])
        self.assertEqual(err, "")
        self.assertEqual(self.check(whole, "-q"), ("", ""))
        roots = self.run_tool("hash", "--root-only", "a.safetensors", "b.safetensors")[0]
        self.assertEqual(self.check(roots)[0].splitlines(), ["a.safetensors: OK", "b.safetensors: OK", "2 lines: 2 OK, 0 FAILED"])
        self.check(whole.replace("\n", "\r\n"))

    def test_every_changed_digit_fails_its_line_alone(self):
        whole = self.two().splitlines()
        for at, line in enumerate(whole):
            for place in (0, 31, 63):
                wrong = line[:place] + ("0" if line[place] != "0" else "1") + line[place + 1 :]
                out, _ = self.check("\n".join([*whole[:at], wrong, *whole[at + 1 :]]) + "\n", code=1)
                failed = [n for n, said in enumerate(out.splitlines()[:-1]) if not said.endswith(": OK")]
                self.assertEqual((failed, out.splitlines()[-1]), ([at], "7 lines: 6 OK, 1 FAILED"))

    def test_a_changed_value_fails_its_tensor_and_its_file(self):
        whole = self.two()
        self.file("b.safetensors", safetensors([("w", "F32", [2], floats(5, 6.5)), ("a.safetensors", "F32", [1], floats(7))]))
        result = self.check(whole, "--json", code=1)[0]
        lines = json.loads(result)["lines"]
        self.assertEqual([line["name"] for line in lines if not line["ok"]], ["w", "b.safetensors"])
        self.assertEqual(self.check(whole, "-q", code=1)[0].splitlines(), ["w: FAILED", "b.safetensors: FAILED"])

    def test_tensors_that_came_or_went_fail(self):
        whole = self.two()
        self.file("b.safetensors", safetensors([("w", "F32", [2], floats(5, 6))]))
        out, _ = self.check(whole.replace("a.safetensors\n", "gone\n", 2).replace("gone\n", "a.safetensors\n", 1), code=1)
        self.assertIn("gone: FAILED (neither a file nor a tensor of b.safetensors)", out)
        self.file("b.safetensors", safetensors([("w", "F32", [2], floats(5, 6)), ("a.safetensors", "F32", [1], floats(7)), ("new", "U8", [1], b"n")]))
        self.assertEqual([line for line in self.check(whole, code=1)[0].splitlines() if "FAILED" in line and ":" in line][:1], ["b.safetensors: FAILED"])

    def test_a_file_that_cannot_be_read_is_exit_code_2_and_the_others_are_checked(self):
        whole = self.two()
        os.remove("b.safetensors")
        out, err = self.check(whole, code=2)
        self.assertIn("b.safetensors: FAILED (could not be read)", out)
        self.assertIn("b: OK", out)
        self.assertIn("No such file", err)

    def test_what_is_no_list_is_refused(self):
        self.two()
        for text in ("", "\n", "x  y\n", "0" * 63 + "  w\n", "0" * 64 + " w\n", "G" * 64 + "  w\n", '{"schema":1}\n'):
            self.assertRegex(self.check(text, code=2)[1], "no list|as ballast hash prints it")
        self.run_tool("hash", "--check", "absent", code=2)
        self.run_tool("hash", "--check", ".", code=2)

    def test_the_steps_that_made_the_list_check_it(self):
        self.two()
        listed = self.run_tool("hash", "a.safetensors", "--dtype", "bf16", "--include", "w|b")[0]
        self.check(listed, "--dtype", "bf16", "--include", "w|b")
        self.check(listed, code=1)


if __name__ == "__main__":
    unittest.main()
