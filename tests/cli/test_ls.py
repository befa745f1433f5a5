# SPDX-License-Identifier: Apache-2.0
"""ballast ls and show: what is listed, how, and what never reaches a terminal."""
import struct
import unittest

from cli_testing import SOURCE, CliTest, environment, floats, safetensors


def blocks(count, shape=(2,)):
    data = floats(*[1.0] * shape[0])
    return [(f"layers.{i}.{part}", "F32", list(shape), data) for i in range(count) for part in ("norm1.weight", "norm2.weight")]


class Ls(CliTest):
    def test_json_has_exactly_the_documented_members_in_file_order(self):
        path = self.small()
        listing = self.run_json("ls", path)
        self.assertEqual(list(listing), ["schema", "file", "format", "metadata", "tensors", "notes"])
        self.assertEqual(listing["file"], path)
        self.assertEqual(listing["format"], "safetensors")
        self.assertEqual(listing["metadata"], {"format": "pt", "author": "somebody"})
        self.assertEqual(
            listing["tensors"],
            [
                {"name": "b.weight", "dtype": "F32", "shape": [2, 2], "bytes": 16},
                {"name": "b.bias", "dtype": "F32", "shape": [2], "bytes": 8},
                {"name": "steps", "dtype": "I64", "shape": [], "bytes": 8},
            ],
        )
        self.assertEqual(listing["notes"], [])

    def test_table_has_a_row_a_tensor_and_totals(self):
        out, err = self.run_tool("ls", self.small())
        lines = out.splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "DTYPE", "SHAPE", "SIZE"])
        self.assertEqual(lines[1].split(), ["b.weight", "F32", "[2,", "2]", "16", "B"])
        self.assertEqual(lines[-1], "3 tensors, 7 parameters, 32 B (F32 2, I64 1)")
        self.assertEqual(err, "")

    def test_columns_line_up_with_wide_characters_too(self):
        path = self.file("wide.safetensors", safetensors([("日本語.w", "F32", [1], floats(1)), ("abc", "F32", [1], floats(1))]))
        out, _ = self.run_tool("ls", path)
        wide, narrow = out.splitlines()[1:3]
        self.assertEqual(wide.index("F32") + 3, narrow.index("F32"))  # three characters take two columns each

    def test_control_bytes_in_names_are_shown_and_not_sent(self):
        name = "evil\x1b[2J\x07\u202ename\x7f\u009b"
        path = self.file("evil.safetensors", safetensors([(name, "F32", [1], floats(float("nan")))], {"k\x1b": "v\x1b]0;x\x07"}))
        for arguments in (["ls", path], ["ls", path, "--tree"], ["ls", path, "--plain"], ["ls", path, "--json"], ["show", path], ["show", path, "--json"],
                          ["stats", path], ["meta", path], ["verify", path], ["verify", path, "--json"], ["show", path, name]):
            out, err = self.run_tool(*arguments, code=1 if arguments[0] == "verify" else 0)
            for unsafe in "\x1b\x07\u202e\x7f\u009b":
                self.assertNotIn(unsafe, out + err, arguments)
        self.assertIn("\\x1b[2J", self.run_tool("ls", path)[0])
        self.assertEqual(self.run_json("ls", path)["tensors"][0]["name"], name)

    def test_file_names_are_escaped_in_messages(self):
        _, err = self.run_tool("ls", self.path("no\x1b[31mfile"), code=2)
        self.assertNotIn("\x1b", err)
        self.assertIn("\\x1b[31m", err)

    def test_a_huge_name_is_cut_in_tables_and_whole_in_json(self):
        name = "n" * 100_000
        path = self.file("huge.safetensors", safetensors([(name, "F32", [1], floats(1))]))
        out, _ = self.run_tool("ls", path)
        self.assertLess(len(out), 2000)
        self.assertIn("(100000 bytes)", out)
        self.assertEqual(self.run_json("ls", path)["tensors"][0]["name"], name)

    def test_fold_joins_names_that_differ_in_a_number_only(self):
        path = self.file("blocks.safetensors", safetensors(blocks(12) + [("layers.12.norm1.weight", "F32", [3], floats(1, 1, 1))]))
        out, _ = self.run_tool("ls", path, "--fold")
        self.assertIn("layers.#.norm1.weight  ×12", out)
        self.assertIn("layers.#.norm2.weight  ×12", out)
        self.assertRegex(out, r"layers.12.norm1.weight +F32 +\[3\]")  # another shape: not the same block
        self.assertIn("25 tensors", out)
        self.assertEqual(len(out.splitlines()), 5)

    def test_a_pipe_gets_every_tensor_and_a_small_terminal_the_folded_ones(self):
        path = self.file("blocks.safetensors", safetensors(blocks(40)))
        self.assertEqual(len(self.run_tool("ls", path)[0].splitlines()), 82)
        seen, code = self.run_on_terminal("ls", path, rows=24)
        self.assertEqual(code, 0)
        self.assertIn("×40", seen)
        self.assertIn("--no-fold", seen)
        seen, _ = self.run_on_terminal("ls", path, "--no-fold", rows=24)
        self.assertNotIn("×40", seen)

    def test_tree_sums_branches_and_folds_equal_blocks(self):
        out, _ = self.run_tool("ls", self.file("t.safetensors", safetensors(blocks(12))), "--tree")
        self.assertIn("0…11  ×12", out)
        self.assertIn("24 tensors", out)
        plain, _ = self.run_tool("ls", self.path("t.safetensors"), "--tree", env=environment(LC_ALL="C"))
        self.assertTrue(plain.isascii())
        self.assertIn("0..11  x12", plain)

    def test_tree_depth_limits_levels(self):
        out, _ = self.run_tool("ls", self.file("t.safetensors", safetensors(blocks(2) + [("head.w", "F32", [1], floats(1))])), "--tree", "--depth", "1")
        self.assertEqual(len(out.splitlines()), 4)
        self.assertEqual(self.run_tool("ls", self.path("t.safetensors"), "--depth", "1")[0], out)  # a depth is a tree's

    def test_root_shows_a_part_under_the_names_convert_gives_it(self):
        net = str(SOURCE / "examples/data/net.pt")
        self.assertIn("state_dict.4.bias", [t["name"] for t in self.run_json("ls", net)["tensors"]])
        for command in (["ls", net], ["stats", net]):
            names = [t["name"] for t in self.run_json(*command, "--root", "state_dict")["tensors"]]
            self.assertEqual((len(names), names[-1]), (9, "4.bias"), command)
        self.assertEqual(self.run_json("verify", net, "--root", "state_dict")["tensors"], 9)
        self.assertIn('"state_dict"', self.run_tool("ls", net, "--root", "nothing", code=2)[1])

    def test_include_exclude_and_sort(self):
        path = self.file("s.safetensors", safetensors([("a10", "F32", [1], floats(1)), ("a2", "F32", [2], floats(1, 1)), ("b", "F32", [3], floats(1, 1, 1))]))
        names = lambda *arguments: [t["name"] for t in self.run_json("ls", path, *arguments)["tensors"]]
        self.assertEqual(names("--include", "^a"), ["a10", "a2"])
        self.assertEqual(names("--include", "^a", "--include", "b"), ["a10", "a2", "b"])
        self.assertEqual(names("--exclude", "1"), ["a2", "b"])
        self.assertEqual(names("--sort", "name"), ["a2", "a10", "b"])
        self.assertEqual(names("--sort", "size"), ["b", "a2", "a10"])
        _, err = self.run_tool("ls", path, "--include", "(", code=2)
        self.assertIn("missing )", err)

    def test_several_files_make_one_json_and_a_bad_one_does_not_hide_the_others(self):
        good = self.small()
        result = self.run_json("ls", good, self.path("absent"), good, code=2)
        self.assertEqual([sorted(f) for f in result["files"]][1], ["error", "file"])
        self.assertEqual(result["files"][1]["error"]["code"], "file-not-found")
        self.assertEqual(len(result["files"][2]["tensors"]), 3)

    def test_plain_is_tabs_and_nothing_else(self):
        out, _ = self.run_tool("ls", self.small(), "--plain")
        self.assertEqual(out, "b.weight\tF32\t[2, 2]\t16\nb.bias\tF32\t[2]\t8\nsteps\tI64\t[]\t8\n")

    def test_long_shows_offsets_into_the_file(self):
        path = self.small()
        out, _ = self.run_tool("ls", path, "--long")
        offset = int(out.splitlines()[1].split()[-1])
        with open(path, "rb") as file:
            file.seek(offset)
            self.assertEqual(struct.unpack("<4f", file.read(16)), (1, 2, 3, 4))

    def test_an_empty_checkpoint_says_so(self):
        out, _ = self.run_tool("ls", self.file("e.safetensors", safetensors([])))
        self.assertEqual(out, "no tensors\n")


class Show(CliTest):
    def test_shows_format_size_and_metadata(self):
        out, _ = self.run_tool("show", self.small())
        for part in ("safetensors", "3 tensors", "author = somebody", "format = pt"):
            self.assertIn(part, out)
        self.assertEqual(self.run_json("show", self.path("small.safetensors"))["metadata"]["author"], "somebody")

    def test_shows_a_tensor_with_its_values(self):
        shown = self.run_json("show", self.small(), "b.weight")
        self.assertEqual((shown["values"], shown["min"], shown["max"], shown["mean"]), ([1, 2, 3, 4], 1, 4, 2.5))
        self.assertIn("1, 2, 3, 4", self.run_tool("show", self.path("small.safetensors"), "b.weight")[0])

    def test_shows_what_lies_under_a_prefix(self):
        out, _ = self.run_tool("show", self.small(), "b")
        self.assertIn("b.bias", out)
        self.assertNotIn("steps", out)

    def test_a_misspelt_name_is_an_error(self):
        _, err = self.run_tool("show", self.small(), "b.wieght", code=2)
        self.assertIn('"b.weight"', err)
        self.assertIn("[not-found]", err)


if __name__ == "__main__":
    unittest.main()
