# SPDX-License-Identifier: Apache-2.0
"""What tutorials.py lets pass, and what it does not."""
import pathlib
import tempfile
import textwrap
import unittest

import tutorials


class Walks(unittest.TestCase):
    def walk(self, page):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.md")
            path.write_text(textwrap.dedent(page), encoding="utf-8")
            self.count, wrong = tutorials.walk(path, pathlib.Path(folder), {"PATH": "/usr/bin:/bin"})
            return wrong

    def console(self, *lines):
        return self.walk("\n".join(["text", "", "```console", *lines, "```", ""]))

    def test_comments_alone_may_differ_in_another_language(self):
        def same(one, other):
            with tempfile.TemporaryDirectory() as folder:
                pages = [pathlib.Path(folder, name) for name in ("one.md", "other.md")]
                for path, code in zip(pages, (one, other)):
                    path.write_text(f"`a.py`:\n\n```python\n{code}\n```\n", encoding="utf-8")
                return tutorials.without_comments(pages[0]) == tutorials.without_comments(pages[1])

        self.assertTrue(same("a = 1  # one\n# more\n// and", "a = 1  # 一\n# 更多\n// 和"))
        self.assertFalse(same("a = 1  # one", "a = 2  # one"))
        self.assertFalse(same("a = 1", "a = 1\nb = 2"))
        self.assertFalse(same("x = '#one'", "x = '#two'"))

    def test_output_as_shown_passes(self):
        self.assertIsNone(self.console("$ echo one; echo two", "one", "two", "$ true"))
        self.assertEqual(self.count["run"], 1)

    def test_every_other_output_is_told_with_its_line(self):
        for shown in (["one"], ["one", "two", "three"], ["two", "one"], [], ["one", "tw"]):
            self.assertRegex(self.console("$ true", "$ echo one; echo two", *shown) or "", r"^page\.md:5: \$ echo one")

    def test_ellipses_stand_for_lines_or_for_parts_of_one(self):
        self.assertIsNone(self.console("$ seq 9", "1", "…", "9"))
        self.assertIsNone(self.console("$ seq 2", "…", "1", "2"))
        self.assertIsNone(self.console("$ echo took 17 ms here", "took … ms here"))
        self.assertIsNotNone(self.console("$ seq 9", "1", "…", "10"))
        self.assertIsNotNone(self.console("$ printf '%s\\n' a b", "a…b"))

    def test_a_failure_must_be_mentioned(self):
        self.assertIn("failed with 3", self.console("$ (exit 3)", "$ true"))
        self.assertIsNone(self.console("$ (exit 3)", "$ echo $?", "3"))
        self.assertIsNotNone(self.console("$ (exit 3)", "$ echo $?", "2"))

    def test_what_goes_to_standard_error_counts(self):
        self.assertIsNone(self.console("$ echo oh >&2", "oh"))
        self.assertIsNotNone(self.console("$ echo oh >&2"))

    def test_a_command_may_have_several_lines(self):
        self.assertIsNone(self.console("$ echo a \\", "  b", "a b"))

    def test_blocks_under_a_name_are_files_in_either_language(self):
        self.assertIsNone(self.walk("`a/x.txt`:\n```text\nhello\n```\n\n`y.txt`：\n\n```text\n再见\n```\n\n```console\n$ cat a/x.txt y.txt\nhello\n再见\n```\n"))
        self.assertEqual(self.count, {"written": 2, "run": 1})


if __name__ == "__main__":
    unittest.main()
