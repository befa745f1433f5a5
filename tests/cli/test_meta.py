# SPDX-License-Identifier: Apache-2.0
"""ballast meta: list, get, set and remove; the data keeps every byte."""
import os
import unittest

from cli_testing import CliTest, read_safetensors


class Meta(CliTest):
    def test_lists_and_gets(self):
        path = self.small()
        self.assertEqual(self.run_json("meta", path)["metadata"], {"author": "somebody", "format": "pt"})
        self.assertEqual(self.run_tool("meta", path)[0].splitlines()[1].split(), ["author", "somebody"])
        self.assertEqual(self.run_tool("meta", path, "get", "author"), ("somebody\n", ""))
        _, err = self.run_tool("meta", path, "get", "autor", code=2)
        self.assertIn('did you mean "author"', err)

    def test_set_get_and_rm_keep_the_data(self):
        path = self.small()
        before, _ = read_safetensors(path)
        mode = os.stat(path).st_mode
        self.run_tool("meta", path, "set", "license=apache-2.0", "note=a=b \u00fc\nline")
        after, metadata = read_safetensors(path)
        self.assertEqual(after, before)
        self.assertEqual(metadata, {"author": "somebody", "format": "pt", "license": "apache-2.0", "note": "a=b \u00fc\nline"})
        self.assertEqual(os.stat(path).st_mode, mode)
        self.assertEqual(self.run_tool("meta", path, "get", "note")[0], "a=b \u00fc\nline\n")
        self.run_tool("meta", path, "rm", "note", "license", "author", "format")
        after, metadata = read_safetensors(path)
        self.assertEqual(after, before)
        self.assertFalse(metadata)
        self.assertIn("no metadata", self.run_tool("meta", path)[1])
        self.assertEqual(os.listdir(self.folder), ["small.safetensors"])

    def test_output_leaves_the_input_alone_and_is_not_overwritten(self):
        path = self.small()
        with open(path, "rb") as file:
            before = file.read()
        copy = self.path("copy.safetensors")
        self.run_tool("meta", path, "set", "a=b", "-o", copy)
        self.assertEqual(read_safetensors(copy)[1]["a"], "b")
        self.run_tool("meta", path, "set", "a=c", "-o", copy, code=2)
        self.assertEqual(read_safetensors(copy)[1]["a"], "b")
        self.run_tool("meta", path, "set", "a=c", "-o", copy, "-f")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_wrong_words_are_refused_and_change_nothing(self):
        path = self.small()
        with open(path, "rb") as file:
            before = file.read()
        for arguments in (["set"], ["set", "novalue"], ["set", "=x"], ["rm"], ["rm", "absent"], ["get"], ["get", "a", "b"], ["frob", "x"]):
            self.run_tool("meta", path, *arguments, code=2)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)


if __name__ == "__main__":
    unittest.main()
