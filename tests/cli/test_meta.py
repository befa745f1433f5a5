# SPDX-License-Identifier: Apache-2.0
"""ballast meta: list, get, set and remove; the data keeps every byte."""
import json
import os
import pathlib
import subprocess
import unittest

from cli_testing import BALLAST, CliTest, environment, floats, read_safetensors, safetensors


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


class Room(CliTest):
    """Spaces behind the metadata: the first edit makes room, later small ones write one sector."""

    def test_small_edits_change_one_sector_of_the_file_and_nothing_else(self):
        tensors = [(f"layers.{i}.weight", "F32", [64], floats(*range(64))) for i in range(200)]
        path = pathlib.Path(self.file("big.safetensors", safetensors(tensors, {"format": "pt"})))
        before = read_safetensors(path)[0]
        self.assertFalse(self.run_json("meta", str(path), "set", "license=mit")["in_place"])
        for action in (["set", "license=apache-2.0"], ["set", "author=somebody", "date=2026"], ["rm", "author"], ["set", "format=pt"]):
            old, inode = path.read_bytes(), path.stat().st_ino
            self.assertTrue(self.run_json("meta", str(path), *action)["in_place"], action)
            new = path.read_bytes()
            self.assertEqual((len(new), path.stat().st_ino), (len(old), inode))
            self.assertLessEqual({i // 512 for i in range(len(old)) if old[i] != new[i]}, {0})
            self.assertEqual(read_safetensors(path)[0], before)
        self.assertIn(", in place", self.run_tool("meta", str(path), "set", "x=y")[0])
        self.assertFalse(self.run_json("meta", str(path), "set", "note=" + "n" * 600)["in_place"])
        self.assertEqual(read_safetensors(path), (before, {"date": "2026", "format": "pt", "license": "apache-2.0", "note": "n" * 600, "x": "y"}))
        self.assertEqual(os.listdir(self.folder), ["big.safetensors"])

    def test_converting_gives_the_reference_s_bytes_again(self):
        path = self.small()
        self.run_tool("convert", path, self.path("plain.safetensors"), "--meta", "a=b")
        self.run_tool("meta", path, "set", "a=b")
        self.run_tool("convert", path, self.path("again.safetensors"))
        self.assertEqual(pathlib.Path(self.path("again.safetensors")).read_bytes(), pathlib.Path(self.path("plain.safetensors")).read_bytes())

    def test_a_second_name_of_the_file_keeps_what_it_said(self):
        path = self.small()
        self.run_tool("meta", path, "set", "a=b")
        os.link(path, self.path("backup.safetensors"))
        self.assertFalse(self.run_json("meta", path, "set", "a=c")["in_place"])
        self.assertEqual([read_safetensors(file)[1]["a"] for file in (path, self.path("backup.safetensors"))], ["c", "b"])

    def test_many_edits_at_once_leave_a_whole_file(self):
        path = self.small()
        before = read_safetensors(path)[0]
        self.run_tool("meta", path, "set", "a=b")
        for _ in range(5):
            editors = [subprocess.Popen([BALLAST, "meta", path, "set", f"k{i}=" + "v" * 5 * i, "-q"], stderr=subprocess.PIPE, env=environment()) for i in range(6)]
            for editor in editors:
                said = editor.communicate()[1].decode()
                self.assertIn(editor.returncode, (0, 2), said)  # one whose file changed meanwhile says so
            tensors, metadata = read_safetensors(path)
            self.assertEqual(tensors, before)
            self.assertTrue(all(value == "v" * 5 * int(key[1:]) for key, value in metadata.items() if key[0] == "k"), metadata)


class MetaOfShards(CliTest):
    def shards(self):
        self.run_tool("shard", self.small(), self.path("s") + "/", "--shard-size", "10")
        return sorted(self.folder.glob("s/*.safetensors"))

    def test_an_index_and_a_folder_are_read_and_changed_like_one_file(self):
        shards = self.shards()
        before = [read_safetensors(shard)[0] for shard in shards]
        for where in (self.path("s"), self.path("s") + "/", self.path("s/model.safetensors.index.json")):
            self.assertEqual(self.run_tool("meta", where, "get", "author")[0], "somebody\n")
            self.run_tool("meta", where, "set", "license=mit", "author=a=b")
            self.assertEqual(self.run_json("meta", where)["metadata"], {"author": "a=b", "format": "pt", "license": "mit"})
            for shard in shards:
                self.assertEqual(read_safetensors(shard)[1], {"author": "a=b", "format": "pt", "license": "mit"})
            self.assertEqual(self.run_json("meta", where, "rm", "license")["metadata"], {"author": "a=b", "format": "pt"})
            self.run_tool("meta", where, "set", "author=somebody")
        self.assertEqual([read_safetensors(shard)[0] for shard in shards], before)
        self.run_tool("diff", self.path("small.safetensors"), self.path("s"))

    def test_what_an_interruption_left_is_finished_by_the_same_command(self):
        shards = self.shards()
        self.run_tool("meta", str(shards[0]), "set", "license=mit")
        done = os.stat(shards[0])
        self.run_tool("meta", self.path("s"), "set", "license=mit")
        self.assertEqual({read_safetensors(shard)[1]["license"] for shard in shards}, {"mit"})
        self.assertEqual(os.stat(shards[0]).st_ino, done.st_ino)  # it said so already
        self.run_tool("meta", str(shards[1]), "rm", "license")
        self.run_tool("meta", self.path("s"), "rm", "license")
        self.assertFalse(any("license" in read_safetensors(shard)[1] for shard in shards))

    def test_wrong_words_are_refused_and_change_nothing(self):
        shards = self.shards()
        before = [shard.read_bytes() for shard in shards]
        for arguments in (["set"], ["set", "=x"], ["rm", "absent"], ["set", "ballast.layout=burn"], ["set", "a=b", "-o", self.path("o.safetensors")]):
            self.run_tool("meta", self.path("s"), *arguments, code=2)
        self.assertEqual([shard.read_bytes() for shard in shards], before)

    def test_a_folder_for_a_copy_goes_when_there_is_none(self):
        self.shards()
        self.run_tool("meta", self.path("s"), "set", "a=b", "-o", self.path("new") + "/", "--receipt", self.small(), code=2)
        self.assertFalse(os.path.exists(self.path("new")))
        self.run_tool("meta", self.path("s"), "set", "a=b", "-o", self.path("new") + "/")
        self.assertEqual(self.run_tool("meta", self.path("new"), "get", "a")[0], "b\n")


class MetaOfOutputs(CliTest):
    """convert --meta and shard --meta."""

    def test_what_is_said_stands_beside_what_the_input_said(self):
        path, words = self.small(), ["--meta", "license=apache-2.0", "--meta", "note=a=b =c", "--meta", "author=", "--meta", "\u00fc x=\u00e9\n"]
        said = {"format": "pt", "author": "", "license": "apache-2.0", "note": "a=b =c", "\u00fc x": "\u00e9\n"}
        for out in ("o.safetensors", "o.record"):
            self.run_tool("convert", path, self.path(out), *words)
            tensors, metadata = read_safetensors(self.path(out))
            self.assertEqual({key: value for key, value in metadata.items() if not key.startswith("ballast.")}, said)
            self.assertEqual(tensors, read_safetensors(path)[0])
            self.run_tool("verify", self.path(out))
        self.run_tool("shard", path, self.path("s") + "/", "--shard-size", "10", *words)
        self.run_tool("convert", path, self.path("c.safetensors"), "--shard-size", "10", *words)
        shards = sorted(self.folder.glob("s/*.safetensors")) + sorted(self.folder.glob("c-0*.safetensors"))
        self.assertEqual(len(shards), 6)
        for shard in shards:
            self.assertEqual(read_safetensors(shard)[1], said)

    def test_wrong_words_are_refused_before_anything_is_written(self):
        path = self.small()
        for words in (["novalue"], ["=x"], [""], ["a=1", "--meta", "a=1"], ["ballast.layout=burn"], ["c.weight=b.weight"], [b"bytes=\xff"]):
            for command in (["convert", path, self.path("o.safetensors")], ["convert", path, self.path("o.record")], ["shard", path, self.path("o") + "/"]):
                self.run_tool(*command, "--meta", *words, code=2)
        self.run_tool("convert", path, self.path("o.safetensors"), "--dry-run", "--meta", "ballast.ties={}", code=2)
        self.assertEqual(os.listdir(self.folder), ["small.safetensors"])

    def test_a_format_without_metadata_refuses_it(self):
        for out in ("o.npz", "o.pt", "o.bpk", "o.mpk"):
            for more in ([], ["--dry-run"]):
                _, err = self.run_tool("convert", self.small(), self.path(out), "--meta", "a=b", *more, code=2)
                self.assertIn("has no place for metadata; write safetensors or record [not-representable]", err)
        self.assertEqual(os.listdir(self.folder), ["small.safetensors"])

    def test_what_is_said_to_others_does_not_change_whose_layout_the_tensors_have(self):
        path = self.small()
        for mark in ("format=tf", "format=flax", "producer=burn"):
            for command in (["convert", path, self.path("o.safetensors"), "-f"], ["convert", path, self.path("o.record"), "-f"], ["shard", path, self.path("o") + "/", "-f"]):
                self.run_tool(*command, "--meta", mark)
            for out in (self.path("o.safetensors"), self.path("o.record"), self.path("o") + "/"):
                self.run_tool("diff", path, out)  # another layout would be a difference
                self.run_tool("convert", out, self.path("back.npz"), "-f")  # which holds PyTorch's alone

    def test_the_receipt_has_it(self):
        path, out, receipt = self.small(), self.path("o.safetensors"), self.path("r.json")
        self.run_tool("convert", path, out, "--receipt", receipt, "--meta", "b=2", "--meta", "a=1=1")
        with open(receipt, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["steps"]["meta"], {"a": "1=1", "b": "2"})
        self.run_tool("verify", out, "--receipt", receipt)


if __name__ == "__main__":
    unittest.main()
