# SPDX-License-Identifier: Apache-2.0
"""Receipts are done again: ballast replay, and receipts of shards, merges and metadata."""
import hashlib
import json
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from cli_testing import BALLAST, SOURCE, CliTest, environment, floats, safetensors, write_hollow

NET = str(SOURCE / "examples/data/net.pt")


class Replay(CliTest):
    def source(self):
        return self.file("in.safetensors", safetensors([("module.w", "F32", [2, 3], floats(*range(6))), ("module.norm.running_mean", "F32", [2], floats(1, 1e-9)), ("module.b", "F32", [2], floats(1, 2))], {"author": "somebody"}))

    def changed(self, receipt, change):
        text = json.loads(pathlib.Path(receipt).read_text())
        change(text)
        return self.file("changed.json", json.dumps(text).encode())

    def test_every_conversion_is_done_again_to_the_byte(self):
        rules = self.file("rules.json", json.dumps({"rules": [{"match": "^module\\.w$", "transpose": [0, 1], "to": "module.weight"}]}).encode())
        for name, options in {
            "a.safetensors": [],
            "b.safetensors": ["--dtype", "half", "--rename", "^module\\.=", "--meta", "license=mit"],
            "c.safetensors": ["--rules", rules, "--exclude", "b$"],
            "d.record": ["--dtype", "bf16", "--keep-dtype", "w$"],
            "e.pt": ["--strip-prefixes"],
            "f.npz": ["--include", "w$"],
            "g.safetensors": ["--pack", "small"],
            "h.out": ["--to", "safetensors", "--quantize", "int8"],
            "i/model.safetensors": ["--shard-size", "24"],
        }.items():
            with self.subTest(name):
                pathlib.Path(self.path(name)).parent.mkdir(exist_ok=True)
                receipt = self.path("r.json")
                self.run_tool("convert", self.source(), self.path(name), "--receipt", receipt, "-f", *options)
                result = self.run_json("replay", receipt)
                self.assertEqual((result["same_tensors"], result["same_bytes"], result["problems"], result["output"]), (True, True, [], None))
        out, _ = self.run_tool("replay", receipt, self.source())
        self.assertEqual(out, "the same by tensors, the same by bytes\n")

    def test_training_checkpoints_and_whole_files(self):
        for options in ([], ["--root", ""], ["--root", "state_dict"]):
            for name in ("o.safetensors", "o.pt"):
                self.run_tool("convert", NET, self.path(name), "--receipt", self.path("r.json"), "-f", *options)
                self.assertTrue(self.run_json("replay", self.path("r.json"), NET)["same_bytes"], (options, name))

    def test_shards_have_receipts_that_verify_and_replay(self):
        self.run_tool("shard", self.source(), self.path("s") + "/", "--shard-size", "24", "--meta", "k=v", "--receipt", self.path("r.json"))
        receipt = json.loads(pathlib.Path(self.path("r.json")).read_text())
        self.assertEqual((receipt["command"], receipt["steps"]["shard_bytes"], receipt["steps"]["meta"]), ("shard", 24, {"k": "v"}))
        self.assertEqual(receipt["input"]["root"], receipt["output"]["root"])
        self.run_tool("verify", self.path("s"), "--receipt", self.path("r.json"))
        self.assertTrue(self.run_json("replay", self.path("r.json"))["same_bytes"])

    def parts(self):
        encoder = self.file("encoder.safetensors", safetensors([("enc.w", "F32", [2], floats(1, 2)), ("enc.b", "F32", [1], floats(0))], {"author": "somebody"}))
        return encoder, self.file("decoder.safetensors", safetensors([("dec.w", "F16", [2], b"\0<\0@")]))

    def test_merges_have_receipts_that_verify_and_replay(self):
        for name, options in {"m.safetensors": [], "m.pt": [], "m.npz": [], "m.bpk": [], "m.record": [], "p.safetensors": ["--pack", "small"], "m.out": ["--to", "safetensors"]}.items():
            with self.subTest(name):
                encoder, decoder = self.parts()
                out, receipt = self.path(name), self.path("r.json")
                self.run_tool("merge", encoder, decoder, out, "--receipt", receipt, "-f", *options)
                text = json.loads(pathlib.Path(receipt).read_text())
                self.assertEqual((text["command"], text["steps"]["inputs"]), ("merge", ["encoder.safetensors", "decoder.safetensors"]))
                self.assertEqual([file["sha256"] for file in text["input"]["files"]], [hashlib.sha256(pathlib.Path(p).read_bytes()).hexdigest() for p in (encoder, decoder)])
                self.assertEqual({t["name"] for t in text["input"]["tensors"]}, {"enc.w", "enc.b", "dec.w"})
                for file in (out, encoder, decoder):
                    self.run_tool("verify", file, "--receipt", receipt, "--allow-zeros")
                result = self.run_json("replay", receipt)
                self.assertEqual((result["same_tensors"], result["same_bytes"], result["problems"]), (True, True, []))
        self.assertIn("what the receipt's merge read, bit for bit", self.run_tool("verify", encoder, "--receipt", receipt)[1])
        pathlib.Path(encoder).write_bytes(safetensors([("enc.w", "F32", [2], floats(1, 3))]))
        self.run_tool("verify", encoder, "--receipt", receipt, code=1)

    def test_a_merge_is_replayed_from_all_it_read_in_its_order(self):
        encoder, decoder = self.parts()
        self.run_tool("merge", encoder, decoder, self.path("m.pt"), "--receipt", self.path("r.json"))
        self.run_tool("replay", self.path("r.json"), encoder, decoder)
        for wrong in ([encoder], [decoder, encoder], [encoder, encoder], [encoder, decoder, decoder]):
            _, said = self.run_tool("replay", self.path("r.json"), *wrong, code=2)
            self.assertIn("[invalid-argument]", said)

    def test_a_merge_of_training_checkpoints_and_of_shards(self):
        self.run_tool("shard", self.source(), self.path("s") + "/", "--shard-size", "24")
        self.run_tool("merge", NET, self.path("s"), self.path("m.safetensors"), "--receipt", self.path("r.json"))
        self.assertTrue(self.run_json("replay", self.path("r.json"), NET, self.path("s"))["same_bytes"])
        for file in (NET, self.path("s"), self.path("m.safetensors")):
            self.run_tool("verify", file, "--receipt", self.path("r.json"))

    def test_edits_of_metadata_have_receipts_that_verify_and_replay(self):
        for name, action in {"a": ["set", "license=mit", "x=y=z"], "b": ["rm", "author"], "c": ["set", "license=" + "m" * 2000]}.items():
            with self.subTest(name):
                source, out, receipt = self.source(), self.path(name + ".safetensors"), self.path("r.json")
                self.run_tool("meta", source, *action, "-o", out, "--receipt", receipt, "-f")
                text = json.loads(pathlib.Path(receipt).read_text())
                self.assertEqual(text["command"], "meta")
                self.assertEqual(text["input"]["root"], text["output"]["root"])
                for file in (source, out):
                    self.run_tool("verify", file, "--receipt", receipt)
                self.assertTrue(self.run_json("replay", receipt)["same_bytes"])
                # Of the file itself: what it was is not there any more, but in a copy.
                shutil.copy(source, self.path("before.safetensors"))
                self.run_tool("meta", source, *action, "--receipt", receipt, "-f")
                self.run_tool("verify", source, "--receipt", receipt)
                self.assertTrue(self.run_json("replay", receipt, self.path("before.safetensors"))["same_bytes"])
                self.run_tool("replay", receipt, code=2)

    def test_an_edit_in_place_and_its_replay_give_the_same_bytes(self):
        path, receipt = self.source(), self.path("r.json")
        self.run_tool("meta", path, "set", "a=b")
        shutil.copy(path, self.path("before.safetensors"))
        self.assertTrue(self.run_json("meta", path, "set", "a=c", "--receipt", receipt)["in_place"])
        self.assertTrue(self.run_json("replay", receipt, self.path("before.safetensors"))["same_bytes"])
        self.run_tool("replay", receipt, self.path("before.safetensors"), "-o", self.path("again.safetensors"))
        self.assertEqual(pathlib.Path(self.path("again.safetensors")).read_bytes(), pathlib.Path(path).read_bytes())

    def test_edits_of_shards_replay_into_a_folder(self):
        self.run_tool("shard", self.source(), self.path("s") + "/", "--shard-size", "24")
        shard = sorted(self.folder.glob("s/*.safetensors"))[0]
        self.run_tool("meta", str(shard), "set", "license=mit")  # which it says already when all are told
        shutil.copytree(self.path("s"), self.path("before"))
        self.run_tool("meta", self.path("s"), "set", "license=mit", "--receipt", self.path("r.json"))
        self.run_tool("verify", self.path("s"), "--receipt", self.path("r.json"))
        self.assertTrue(self.run_json("replay", self.path("r.json"), self.path("before"))["same_bytes"])
        self.run_tool("replay", self.path("r.json"), self.path("before"), "-o", self.path("again") + "/")
        for file in self.folder.glob("s/*"):
            self.assertEqual((self.folder / "again" / file.name).read_bytes(), file.read_bytes())

    def test_a_claim_that_is_not_true_is_found(self):
        self.run_tool("convert", self.source(), self.path("o.safetensors"), "--receipt", self.path("r.json"))

        def other_bytes(text):
            text["output"]["files"][0]["sha256"] = "0" * 64

        def other_tensor(text):
            text["output"]["tensors"][0]["sha256"] = "0" * 64

        bytes_alone = self.changed(self.path("r.json"), other_bytes)
        result = self.run_json("replay", bytes_alone, code=1)
        self.assertEqual((result["same_tensors"], result["same_bytes"]), (True, False))
        self.run_tool("replay", bytes_alone, "--tensors-only")
        result = self.run_json("replay", self.changed(self.path("r.json"), other_tensor), "--tensors-only", code=1)
        self.assertEqual((result["same_tensors"], result["same_bytes"]), (False, True))

    def test_what_a_receipt_says_of_its_source_and_its_cast_is_looked_at(self):
        source = self.file("src.safetensors", safetensors([("w", "F32", [3], floats(0.1, 2, 1e9)), ("v", "F32", [1], floats(0.3))]))
        self.run_tool("convert", source, self.path("o.safetensors"), "--dtype", "f16", "--receipt", self.path("r.json"), code=1)
        self.run_tool("replay", self.path("r.json"), source)

        def nothing_changed(text):
            text["input"].update(root=text["output"]["root"], tensors=text["output"]["tensors"])

        def other_size(text):
            text["input"]["files"][0]["bytes"] += 1

        def not_rounded(text):
            text["steps"]["rounded"] = 0

        def not_infinite(text):
            text["steps"]["overflowed"] = 0

        for change, said in ((nothing_changed, "is not what the receipt says was read"), (other_size, "is not what the receipt says was read"), (not_rounded, "rounded 0 values"), (not_infinite, "made 0 infinite")):
            _, err = self.run_tool("replay", self.changed(self.path("r.json"), change), source, code=2)
            self.assertIn(said, err)

    def test_a_result_that_equals_its_source_does_not_stand_for_another(self):
        """A conversion that changes nothing writes what it read; the receipt claims that it wrote something else."""
        source = self.file("src.safetensors", safetensors([("w", "F32", [2], floats(1, 2))]))
        other = self.file("other.safetensors", safetensors([("w", "F32", [2], floats(6, 6))]))
        for name in (source, other):
            self.run_tool("convert", name, name + ".out.safetensors", "--receipt", name + ".json")
        lie = json.loads(pathlib.Path(other + ".json").read_text())["output"]
        forged = self.changed(source + ".json", lambda receipt: receipt.update(output=lie))
        for options in ([], ["-o", self.path("kept.safetensors")], ["--tensors-only"]):
            out, _ = self.run_tool("replay", forged, source, *options, code=1)
            self.assertIn(b"another result by tensors", out if isinstance(out, bytes) else out.encode())
        self.run_tool("replay", source + ".json", source)

    def test_the_source_must_be_the_one_and_be_found(self):
        self.run_tool("convert", self.source(), self.path("o.safetensors"), "--dtype", "f16", "--receipt", self.path("r.json"))
        _, said = self.run_tool("replay", self.path("r.json"), self.path("o.safetensors"), code=2)
        self.assertIn("is not what the receipt was made of", said)
        pathlib.Path(self.path("apart")).mkdir()
        shutil.copy(self.path("r.json"), self.path("apart/r.json"))
        _, said = self.run_tool("replay", self.path("apart/r.json"), code=2)
        self.assertIn("which is not beside it: name the file", said)
        self.run_tool("replay", self.path("apart/r.json"), self.source(), "-o", self.path("kept.safetensors"))
        self.assertEqual(pathlib.Path(self.path("kept.safetensors")).read_bytes(), pathlib.Path(self.path("o.safetensors")).read_bytes())

    def test_names_in_a_receipt_lead_nowhere_else(self):
        self.run_tool("convert", self.source(), self.path("o.safetensors"), "--receipt", self.path("r.json"))

        def climb(text):
            text["output"]["files"][0]["name"] = "../../climbed.safetensors"
            text["input"]["files"][0]["name"] = "/etc/../in.safetensors"

        self.run_tool("replay", self.changed(self.path("r.json"), climb))
        self.assertFalse(pathlib.Path(self.path("../../climbed.safetensors")).exists())

    def test_no_name_of_a_result_leads_out_of_the_folder_it_is_made_in(self):
        self.run_tool("shard", self.source(), self.path("s") + "/", "--shard-size", "24", "--receipt", self.path("s.json"))
        self.run_tool("convert", self.source(), self.path("c.safetensors"), "--shard-size", "24", "--receipt", self.path("c.json"))
        around = pathlib.Path(self.path("tmp"))
        around.mkdir()
        for receipt in ("s.json", "c.json"):
            for name in ("...index.json", "..index.json", "../...index.json", ".index.json", "..", ".", "", "a/..", "a/.index.json", "/", "../...index.json/...index.json"):
                def climb(text, name=name):
                    for file in text["output"]["files"]:
                        file["name"] = name

                subprocess.run([BALLAST, "replay", self.changed(self.path(receipt), climb), self.source()], env=environment(TMPDIR=str(around)), capture_output=True, timeout=60, check=False)
                self.assertEqual(list(around.iterdir()), [], (receipt, name))

    def test_a_receipt_keeps_nobody_busy(self):
        """Patterns look through all names, and each of them remembers what it has seen; sources are read as a whole."""
        name = "".join(format(i * 2654435761 % 2**32, "032b") for i in range(1800)).replace("0", "a").replace("1", "b")
        long = self.file("long.safetensors", safetensors([(name, "F32", [1], floats(1))]))
        self.run_tool("convert", long, self.path("o.safetensors"), "--receipt", self.path("r.json"))
        thicket = ["q%d" % i for i in range(12000)]

        def step(key, value):
            return lambda text: text["steps"].__setitem__(key, value)

        for change, said in ((step("include", thicket), "at most 4096"), (step("exclude", thicket), "at most 4096"), (step("rename", [{"pattern": p, "to": "x"} for p in thicket]), "too much work"), (step("exclude", ["x%d" % i for i in range(4097)]), "at most 4096"),
                             (step("inputs", ["long.safetensors"] * 2), "named twice")):  # fmt: skip
            with self.subTest(said):
                receipt = self.changed(self.path("r.json"), change)
                _, err = self.run_tool("replay", receipt, *([] if said == "named twice" else [long]), code=2)
                self.assertIn(said, err)


class Interrupted(CliTest):
    """Nothing of a result that nobody keeps is left, whenever the work ends and however."""

    def leftovers(self):
        return sorted(str(file.relative_to(self.folder / "tmp")) for file in (self.folder / "tmp").rglob("*"))

    def replaying(self, *arguments):
        (self.folder / "tmp").mkdir(exist_ok=True)
        return subprocess.Popen([BALLAST, "replay", *arguments, "--no-progress", "-j", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(TMPDIR=self.path("tmp")))

    def interrupt(self, number, *arguments):
        """While it writes, and while it compares what has its final name."""
        for wanted in (lambda names: names, lambda names: any(name.endswith("/o.safetensors") or "-of-" in name for name in names)):
            process = self.replaying(*arguments)
            deadline = time.monotonic() + 60
            while not wanted(self.leftovers()) and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.001)
            self.assertTrue(wanted(self.leftovers()), "the result never appeared")
            process.send_signal(number)
            self.assertEqual(process.wait(60), -number)
            process.stderr.close()
            if number != signal.SIGKILL:
                self.assertEqual(self.leftovers(), [])

    def test_a_signal_leaves_nothing_behind(self):
        source = write_hollow(self.path("in.safetensors"), 400_000_000)
        self.run_tool("convert", source, self.path("o.safetensors"), "--receipt", self.path("r.json"))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.interrupt(number, self.path("r.json"))

    def test_what_was_encrypted_is_not_left_in_the_open(self):
        key = self.run_tool("keygen", "-o", self.path("key"))[0].split()[-1]
        source = write_hollow(self.path("in.safetensors"), 200_000_000)
        self.run_tool("convert", source, self.path("in.safetensors.age"), "--recipient", key)
        self.run_tool("convert", self.path("in.safetensors.age"), self.path("o.safetensors"), "--identity", self.path("key"), "--receipt", self.path("r.json"))
        self.interrupt(signal.SIGINT, self.path("r.json"), "--identity", self.path("key"))
        self.interrupt(signal.SIGKILL, self.path("r.json"), "--identity", self.path("key"))
        left = [self.folder / "tmp" / name for name in self.leftovers()]
        self.assertEqual({oct(file.stat().st_mode & 0o777) for file in left if file.is_dir()}, {"0o700"})  # nobody else looks into it
        process = self.replaying(self.path("r.json"), "--identity", self.path("key"))
        self.assertEqual(process.wait(120), 0)
        process.stderr.close()
        self.assertEqual(self.leftovers(), [])  # and the next one removes it


if __name__ == "__main__":
    unittest.main()
