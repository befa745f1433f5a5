# SPDX-License-Identifier: Apache-2.0
"""What a release job leans on: damage is not passed on, no output destroys an input, and what was not looked at is not called fine."""
import bz2
import gzip
import io
import json
import lzma
import os
import pathlib
import struct
import unittest
import zipfile
import zlib

from cli_testing import CliTest, floats, quantized, safetensors, tied


class Folders(CliTest):
    """A folder is what loaders take from it, whatever open() takes."""

    EVIL = b"cposix\nsystem\n(S'true'\ntR."

    def model(self, **beside):
        (self.folder / "f/sub/deeper").mkdir(parents=True, exist_ok=True)
        clean = safetensors([("w", "F32", [1], floats(1))])
        self.file("f/m.safetensors", clean)
        self.file("f/m.safetensors.index.json", json.dumps({"weight_map": {"w": "m.safetensors"}}).encode())
        self.file("f/config.json", b'{"a": 1}')
        self.file("f/README.md", b"# A model\n")
        for name, data in beside.items():
            self.file("f/" + name, data)
        return self.path("f")

    def test_a_folder_of_shards_and_text_is_clean(self):
        self.run_tool("scan", self.model())

    def test_every_file_that_a_loader_could_load_is_looked_at_whatever_it_is_called(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("archive/data.pkl", self.EVIL)
        for name in ("pytorch_model.bin", "model.pkl", "x", "notes.txt", ".hidden", "z.safetensors", "sub/x.bin", "sub/deeper/x"):
            joblibs = b"ZF" + hex(len(self.EVIL)).encode().ljust(19) + zlib.compress(self.EVIL)
            for data in (self.EVIL, b"\x80\x02" + self.EVIL, packed.getvalue(), joblibs, *(pack(self.EVIL) for pack in (gzip.compress, zlib.compress, bz2.compress, lzma.compress))):
                folder = self.model(**{name: data})
                out, _ = self.run_tool("scan", folder, code=1)
                self.assertIn(name, out)
                os.remove(os.path.join(folder, name))

    def test_a_clean_file_beside_stays_clean(self):
        self.run_tool("scan", self.model(**{"other.safetensors": safetensors([("v", "F32", [1], floats(2))]), "a.pkl": b"\x80\x02}."}))


class Damage(CliTest):
    """One byte of a weight is changed; the checksum beside it says so."""

    def damaged(self, path):
        blob = bytearray(pathlib.Path(path).read_bytes())
        at = blob.rindex(floats(1.25, 2.5, 3.75))
        blob[at] ^= 1
        pathlib.Path(path).write_bytes(blob)
        return path

    def setUp(self):
        super().setUp()
        self.source = self.file("s.safetensors", safetensors([("w", "F32", [3], floats(1.25, 2.5, 3.75)), ("v", "F32", [1], floats(4))]))

    def test_damage_that_a_checksum_tells_is_not_passed_on(self):
        for suffix in ("pt", "record", "npz"):
            self.run_tool("convert", self.source, self.path(f"d.{suffix}"))
            bad = self.damaged(self.path(f"d.{suffix}"))
            for command in (
                ["convert", bad, self.path("o.safetensors")],
                ["convert", bad, self.path("o.safetensors"), "--dtype", "f16"],
                ["convert", bad, self.path("o.pt"), "--receipt", self.path("r.json")],
                ["convert", bad, self.path("o.safetensors"), "--shard-size", "1KB"],
                ["merge", bad, self.path("o.record")],
                ["shard", bad, self.path("o.safetensors")],
            ):
                _, err = self.run_tool(*command, code=2)
                self.assertIn("[bad-crc]", err, command)
                self.assertEqual([n for n in os.listdir(self.folder) if n.startswith(("o", "r.", "."))], [], command)
            self.run_tool("convert", bad, self.path("sound.safetensors"), "--include", "^v$", "-f")  # the other one is

    def test_no_check_rescues_and_the_receipt_says_so(self):
        self.run_tool("convert", self.source, self.path("d.pt"))
        bad = self.damaged(self.path("d.pt"))
        self.run_tool("convert", bad, self.path("o.safetensors"), "--no-check", "--receipt", self.path("r.json"))
        self.assertEqual(json.loads(pathlib.Path(self.path("r.json")).read_text())["steps"]["unchecked"], True)
        self.run_tool("merge", bad, self.path("m.safetensors"), "--no-check")
        self.run_tool("shard", bad, self.path("s.safetensors"), "--no-check")

    def test_an_archive_whose_checksums_are_zero_has_none(self):
        self.run_tool("convert", self.source, self.path("d.npz"))
        with zipfile.ZipFile(self.path("d.npz")) as archive:
            entry = archive.getinfo("w.npy")
            offset, crc = entry.header_offset, struct.pack("<I", entry.CRC)
        blob = pathlib.Path(self.path("d.npz")).read_bytes().replace(crc, b"\0\0\0\0")
        pathlib.Path(self.path("d.npz")).write_bytes(blob)
        self.run_tool("convert", self.damaged(self.path("d.npz")), self.path("o.safetensors"))


class Apart(CliTest):
    """No output is an input or another output, whatever names lead there; said before anything is written."""

    def test_no_output_takes_the_place_of_an_input_or_of_another_output(self):
        source = self.small("a.safetensors")
        content = pathlib.Path(source).read_bytes()
        os.link(source, self.path("hard.safetensors"))
        os.symlink(source, self.path("soft.safetensors"))
        os.mkdir(self.path("sub"))
        os.symlink(self.path("new.safetensors"), self.path("dangling.safetensors"))
        rules = self.file("rules.json", b'{"rules": []}')
        before = sorted(os.listdir(self.folder))
        out = self.path("o.safetensors")
        for command in (
            ["convert", source, source],
            ["convert", source, self.path("hard.safetensors")],
            ["convert", source, self.path("soft.safetensors")],
            ["convert", source, self.path("sub/../a.safetensors")],
            ["convert", self.path("soft.safetensors"), source],
            ["convert", source, out, "--receipt", source],
            ["convert", source, out, "--receipt", out],
            ["convert", source, out, "--receipt", self.path("./sub/../o.safetensors")],
            ["convert", source, self.path("dangling.safetensors"), "--receipt", self.path("new.safetensors")],
            ["convert", source, out, "--rules", rules, "--receipt", rules],
            ["convert", source, out, "--rules", source, "--receipt", source],
            ["merge", source, self.path("soft.safetensors")],
            ["new", source, "-o", source],
            ["new", source, "-o", self.path("hard.safetensors")],
            ["meta", source, "set", "a=b", "-o", self.path("hard.safetensors")],
        ):
            _, err = self.run_tool(*command, "-f", code=2)
            self.assertIn("different files", err, command)
            self.assertEqual(sorted(os.listdir(self.folder)), before, command)
            self.assertEqual(pathlib.Path(source).read_bytes(), content, command)

    def test_shards_do_not_replace_the_set_they_are_made_from(self):
        source = self.small("a.safetensors")
        os.mkdir(self.path("set"))
        self.run_tool("shard", source, self.path("set"), "--size", "10")
        before = {name: pathlib.Path(self.path("set/" + name)).read_bytes() for name in os.listdir(self.path("set"))}
        first = sorted(name for name in before if name.endswith("rs"))[0]
        for given in ("set", "set/model.safetensors.index.json", "set/" + first):
            for command in (["shard", self.path(given), self.path("set"), "-f"], ["convert", self.path(given), self.path("set"), "--shard-size", "1MB", "-f"]):
                _, err = self.run_tool(*command, code=2)
                self.assertIn("different files", err, command)
        self.assertEqual({name: pathlib.Path(self.path("set/" + name)).read_bytes() for name in os.listdir(self.path("set"))}, before)

    def test_a_side_output_that_cannot_be_written_is_said_before_the_work(self):
        source = self.small("a.safetensors")
        for receipt, word in ((self.path("nowhere/r.json"), "folder"), (self.path("r" * 300), "name of 300 bytes")):
            _, err = self.run_tool("convert", source, self.path("o.safetensors"), "--receipt", receipt, code=2)
            self.assertIn(word, err)
            self.assertFalse(os.path.exists(self.path("o.safetensors")))


class Gates(CliTest):
    """What a release job leans on says no where it has not looked, and before it has done half of its work."""

    def test_patterns_that_leave_nothing_are_no_clean_bill(self):
        source = self.file("a.safetensors", tied())
        for command in (["ls"], ["verify"], ["stats"], ["hash"]):
            for pattern in (["--include", "^typo"], ["--exclude", "."]):
                _, err = self.run_tool(*command, source, *pattern, code=2)
                self.assertIn("tensors is left by", err)
        self.run_tool("diff", source, source, "--include", "^typo", code=2)

    def test_metadata_that_makes_tensors_what_they_are_is_changed_by_force_alone(self):
        hub = safetensors([("a.weight", "F32", [2], floats(1, 2))], {"b.weight": "a.weight", "format": "pt"})
        for name, data, words in (("t", tied(), ("rm", "ballast.ties")), ("q", quantized(), ("rm", "ballast.quantized")), ("s", quantized(), ("set", "ballast.ties={}")), ("h", hub, ("rm", "b.weight"))):
            source = self.file(name + ".safetensors", data)
            self.run_tool("meta", source, *words, code=2)
            self.assertEqual(pathlib.Path(source).read_bytes(), data)
            self.run_tool("meta", source, *words, "-f")
        self.run_tool("meta", self.file("f.safetensors", hub), "set", "format=np", "epoch=3")

    def test_a_receipt_that_cannot_be_written_is_said_before_the_work(self):
        os.mkdir(self.path("folder"))
        self.run_tool("convert", self.file("a.safetensors", tied()), self.path("o.pt"), "-f", "--receipt", self.path("folder"), code=2)
        self.assertFalse(os.path.exists(self.path("o.pt")))

    def test_verify_finds_damage_in_an_archive_of_arrays(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }".ljust(117) + b"\n"
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("a.npy", b"\x93NUMPY\1\0" + struct.pack("<H", 118) + header + floats(1, 2, 3, 4))
        data = bytearray(made.getvalue())
        self.run_tool("verify", self.file("good.npz", bytes(data)))
        data[data.index(floats(3, 4))] ^= 1
        out, _ = self.run_tool("verify", self.file("bad.npz", bytes(data)), code=1)
        self.assertIn("checksum", out)

    def test_arrays_that_are_one_name_to_numpy_are_neither_read_nor_written(self):
        array = b"\x93NUMPY\1\0" + struct.pack("<H", 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n" + floats(1)
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for name in ("a.npy", "a.npy.npy"):
                archive.writestr(name, array)
        self.run_tool("ls", self.file("two.npz", made.getvalue()), code=2)
        both = safetensors([("a", "F32", [1], floats(1)), ("a.npy", "F32", [1], floats(2))])
        self.run_tool("convert", self.file("both.safetensors", both), self.path("o.npz"), code=2)

    def test_whole_numbers_that_do_not_fit_are_reported_when_a_rule_casts_to_them(self):
        source = self.file("v.safetensors", safetensors([("f", "F32", [5], floats(70000, -3.7, 1e-8, 5, float("nan"))), ("i", "I64", [3], struct.pack("<3q", 300, -1, 7))]))
        def convert(match, dtype, code):
            rules = self.file("r.json", json.dumps({"rules": [{"match": match, "cast": dtype}]}).encode())
            return self.run_tool("convert", source, self.path("o.safetensors"), "-f", "--rules", rules, code=code)[1]
        self.assertIn("2 values were too large", convert("f", "int8", 1))
        self.assertIn("3 values were too large", convert("f", "uint8", 1))
        self.assertIn("1 value was too large", convert("i", "int8", 1))
        convert("i", "int32", 0)
        for dtype in ("i8", "u8"):
            self.assertIn("64 to NumPy", convert("i", dtype, 2))

    def test_rules_make_no_more_of_a_file_than_it_has(self):
        source = self.file("a.safetensors", tied())
        for rule in ({"match": "(.*)", "to": "$1$1"}, {"match": "(.*)", "alias": "$1.a"}):
            rules = self.file("r.json", json.dumps({"rules": [rule] * 40}).encode())
            self.assertIn("[too-many]", self.run_tool("convert", source, self.path("o.safetensors"), "-f", "--rules", rules, code=2)[1])


if __name__ == "__main__":
    unittest.main()
