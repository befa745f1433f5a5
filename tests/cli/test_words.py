# SPDX-License-Identifier: Apache-2.0
"""Refusals say what to do next, in words that can be typed."""
import os
import pathlib
import pickle
import struct
import unittest

from cli_testing import SOURCE, CliTest, floats, safetensors

TORCH = SOURCE / "tests/fixtures/torch/files"


class RunsCode:
    def __reduce__(self):
        return (os.system, ("true",))


class NextStep(CliTest):
    def refusal(self, *arguments):
        return self.run_tool(*arguments, code=2)[1]

    def test_a_pickle_that_could_run_code_names_the_option_that_reads_past_it(self):
        path = self.file("evil.pkl", pickle.dumps({"w": RunsCode()}, 2))
        self.assertIn("--inert", self.refusal("ls", path))
        self.run_tool("ls", path, "--inert")

    def test_a_gguf_file_is_named_and_nothing_is_said_of_pickles(self):
        err = self.refusal("ls", self.file("m.gguf", b"GGUF\3\0\0\0" + bytes(64)))
        self.assertIn("llama.cpp", err)
        self.assertNotIn("pickle", err)

    def test_an_extension_that_says_nothing_lists_those_that_do(self):
        err = self.refusal("convert", self.small(), self.path("out.foo"))
        for word in ("--to", ".safetensors", ".pt", "torch-zip"):
            self.assertIn(word, err)

    def test_a_new_folder_for_shards_is_named_with_its_slash(self):
        folder = self.path("shards")
        self.assertIn(f'"{folder}/"', self.refusal("shard", self.small(), folder))
        self.run_tool("shard", self.small(), folder + "/")

    def test_merging_one_name_twice_names_both_files(self):
        a, b = self.small("a.safetensors"), self.small("b.safetensors")
        err = self.refusal("merge", a, b, self.path("out.safetensors"))
        self.assertIn(a, err)
        self.assertIn(b, err)

    def test_what_is_no_receipt_is_called_so(self):
        for name, text in (("a.json", '{"a": 1}'), ("b.json", "[]"), ("c.json", '{"schema": 1}')):
            self.assertIn("is not a receipt", self.refusal("verify", self.small(), "--receipt", self.file(name, text.encode())))

    def test_what_no_cast_helps_against_is_not_told_to_be_cast(self):
        err = self.refusal("convert", str(TORCH / "big_endian_complex128.pt"), self.path("out.safetensors"))
        self.assertIn("exclude", err)
        self.assertNotIn("cast", err)


class Overflow(CliTest):
    def test_what_stands_for_a_value_that_is_too_large_is_what_is_there(self):
        path = self.file("big.safetensors", safetensors([("w", "F32", [2], floats(1e6, 1))]))
        for dtype, said, bits in (("f16", "infinity", b"\x00\x7c"), ("f8_e4m3", "NaN", b"\x7f")):
            out = self.path(f"{dtype}.safetensors")
            _, err = self.run_tool("convert", path, out, "--dtype", dtype, code=1)
            self.assertIn(f"; {said} stands there now", err)
            data = pathlib.Path(out).read_bytes()
            (size,) = struct.unpack("<Q", data[:8])
            self.assertEqual(data[8 + size :][: len(bits)], bits)


class Folders(CliTest):
    def test_file_bytes_of_a_folder_are_those_of_the_files_in_it(self):
        folder = pathlib.Path(self.path("one"))
        folder.mkdir()
        model = folder / "model.safetensors"
        model.write_bytes(pathlib.Path(self.small()).read_bytes())
        self.assertEqual(self.run_json("show", str(folder))["file_bytes"], model.stat().st_size)
        shards = self.path("shards") + "/"
        self.run_tool("shard", self.small(), shards, "--shard-size", "16B")
        files = list(pathlib.Path(shards).iterdir())
        self.assertGreater(len(files), 2)
        expected = sum(file.stat().st_size for file in files)
        self.assertEqual(self.run_json("show", shards)["file_bytes"], expected)
        index = next(str(file) for file in files if file.suffix == ".json")
        self.assertEqual(self.run_json("show", index)["file_bytes"], expected)


if __name__ == "__main__":
    unittest.main()
