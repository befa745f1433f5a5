# SPDX-License-Identifier: Apache-2.0
"""ballast shard, merge and convert --shard-size; Burn's and NumPy's files at the command line; faults in the middle of a set."""
import io
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import unittest
import zipfile

from cli_testing import BALLAST, SOURCE, CliTest, environment, floats, read_safetensors, safetensors

BURN = SOURCE / "tests/fixtures/burn/files"


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def greedy_shard(name, calls):
    """A checkpoint of one tensor, beside which so many lists of 8,000 numbers are made: two bytes of pickle for each of them."""
    tensor = (b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\4tQK\0K\4\x85K\1\x85\x89"
              b"ccollections\nOrderedDict\n)RtR")
    numbers = b"(](" + b"".join(b"M" + struct.pack("<H", i) for i in range(8000)) + b"et"
    lists = b"cbuiltins\nlist\nq\x010" + numbers + b"q\x020](" + b"h\1h\2R" * calls + b"e"
    data = b"\x80\2}(" + text(name) + tensor + text("x") + lists + b"u."
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for entry, content in (("data.pkl", data), ("data/0", floats(1, 2, 3, 4)), ("version", b"3\n")):
            archive.writestr(zipfile.ZipInfo("archive/" + entry), content)
    return packed.getvalue()


class Shards(CliTest):
    def ten(self, name="big.safetensors", first=0):
        return self.file(name, safetensors([(f"layer.{i}", "F32", [25], floats(*[first + i] * 25)) for i in range(10)], {"format": "pt"}))

    def test_shard_and_merge_give_back_the_same_file(self):
        source = self.ten()
        report = self.run_json("shard", source, self.path("out.safetensors"), "--size", "350")
        self.assertEqual([os.path.basename(f) for f in report["output"]["shards"]], [f"out-0000{i}-of-00004.safetensors" for i in range(1, 5)])
        self.assertEqual(report["output"]["file"], self.path("out.safetensors.index.json"))
        index = json.loads(pathlib.Path(report["output"]["file"]).read_text())
        self.assertEqual((index["metadata"]["total_size"], sorted(index["weight_map"])), (1000, [f"layer.{i}" for i in range(10)]))
        for shard in report["output"]["shards"]:
            tensors, metadata = read_safetensors(shard)
            self.assertEqual(metadata, {"format": "pt"})
            self.assertTrue(all(index["weight_map"][name] == os.path.basename(shard) for name in tensors))
        out, _ = self.run_tool("merge", self.path("out.safetensors.index.json"), self.path("merged.safetensors"))
        self.assertIn("10 tensors", out)
        self.assertEqual(pathlib.Path(self.path("merged.safetensors")).read_bytes(), pathlib.Path(source).read_bytes())
        listed = self.run_json("ls", self.path("out.safetensors.index.json"))
        self.assertEqual((listed["format"], len(listed["tensors"])), ("sharded", 10))

    def test_a_folder_is_read_and_written(self):
        os.mkdir(self.path("model"))
        self.run_tool("shard", self.ten(), self.path("model"), "--size", "500")
        self.assertEqual(sorted(os.listdir(self.path("model"))), ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"])
        for command in ("ls", "verify", "stats", "scan"):
            self.run_tool(command, self.path("model"), *(["--allow-zeros"] if command == "verify" else []))

    def test_a_journal_that_came_with_a_folder_deletes_nothing(self):
        """Whatever it says: names of others, names of this set, with our first line copied from another folder or made up."""
        os.mkdir(self.path("mine"))
        names = ["thesis.safetensors", "other-00001-of-00002.safetensors", "model-00007-of-00009.safetensors", "../outside.safetensors"]
        content = pathlib.Path(self.ten()).read_bytes()
        lines = "".join(f"{sign}{name}\n" for sign in "+-" for name in names)
        number = os.stat(self.path("mine")).st_ino
        for first in ("", "publishing in folder 1\n", f"publishing in folder {number + 1}\n", f"publishing in folder {number}"):
            for name in names:
                pathlib.Path(self.path("mine"), name).write_bytes(content)
            pathlib.Path(self.path("mine"), ".model.safetensors.index.json.publishing").write_text(first + lines)
            self.run_tool("shard", self.ten(), self.path("mine"), "-f")
            for name in names[:2] + names[3:]:
                self.assertEqual(pathlib.Path(self.path("mine"), name).read_bytes(), content, (first, name))

    def test_what_another_process_is_giving_its_names_is_left_alone(self):
        source = self.file("many.safetensors", safetensors([(f"w{i:04}", "F32", [16], floats(*[i] * 16)) for i in range(400)]))
        for number, force in enumerate([[], ["-f"]] * 2):
            folder = pathlib.Path(self.path(f"both{number}"))
            folder.mkdir()
            journal = folder / ".model.safetensors.index.json.publishing"
            first = subprocess.Popen([BALLAST, "shard", source, str(folder), "--shard-size", "64", "-q"], stderr=subprocess.PIPE, env=environment())
            while first.poll() is None and not (journal.exists() and any(folder.glob("model-0*"))):
                pass
            first.send_signal(signal.SIGSTOP)
            while first.poll() is None and b") T " not in pathlib.Path(f"/proc/{first.pid}/stat").read_bytes():
                pass
            if first.poll() is None and journal.exists():
                self.assertIn("[already-exists]", self.run_tool("shard", source, str(folder), *force, code=2)[1])
            first.send_signal(signal.SIGCONT)
            self.assertEqual((first.communicate()[1], first.returncode), (b"", 0))
            self.assertEqual(len(self.run_json("ls", str(folder))["tensors"]), 400)

    def greedy(self, count, calls):
        """An index of so many of them."""
        folder = pathlib.Path(self.path(f"greedy{count}"))
        folder.mkdir()
        names = [f"pytorch_model-{i + 1:05}-of-{count:05}.bin" for i in range(count)]
        for i, name in enumerate(names):
            (folder / name).write_bytes(greedy_shard(f"w{i}", calls))
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {f"w{i}": name for i, name in enumerate(names)}}))
        return str(folder)

    def measured(self, *arguments):
        """Exit code, mebibytes and seconds of CPU."""
        child = subprocess.Popen([BALLAST, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode, usage.ru_maxrss / 1024, usage.ru_utime

    def test_all_shards_together_take_what_one_file_may(self):
        """One alone takes 40 MiB; twelve of 19 kB took 450."""
        one, twelve = self.greedy(1, 500), self.greedy(12, 500)
        self.assertEqual(self.measured("ls", one)[0], 0)
        for command in ("ls", "verify", "hash", "scan"):
            code, mebibytes, _ = self.measured(command, twelve)
            self.assertIn(code, (1, 2), command)
            self.assertLess(mebibytes, 180, command)
        self.assertIn("expansion-limit", self.run_tool("ls", twelve, code=2)[1])
        modest = self.greedy(4, 100)  # beyond eight times their size, and less than 64 MiB together
        self.assertEqual(len(self.run_json("ls", modest)["tensors"]), 4)

    def test_links_in_a_folder_are_not_written_through(self):
        os.mkdir(self.path("linked"))
        names = ["model-00001-of-00001.safetensors", "model.safetensors.index.json", ".model.safetensors.index.json.publishing"]
        for name in names:
            os.symlink(self.path("elsewhere-" + name), pathlib.Path(self.path("linked"), name))
        self.assertIn("[already-exists]", self.run_tool("shard", self.ten(), self.path("linked"), code=2)[1])
        self.run_tool("shard", self.ten(), self.path("linked"), "-f")
        self.assertEqual([name for name in os.listdir(self.path("")) if name.startswith("elsewhere")], [])
        self.assertEqual(len(self.run_json("ls", self.path("linked"))["tensors"]), 10)

    def test_second_names_in_the_metadata_of_the_index_are_tensors(self):
        self.file("a-1.safetensors", safetensors([("wte.weight", "F32", [2], floats(1, 2)), ("b", "F32", [1], floats(3))]))
        index = {"metadata": {"lm_head.weight": "wte.weight", "total_size": 12, "note": "b", "gone.weight": "lost.weight"}, "weight_map": {"wte.weight": "a-1.safetensors", "b": "a-1.safetensors"}}
        path = self.file("a.safetensors.index.json", json.dumps(index).encode())
        self.assertEqual([t["name"] for t in self.run_json("ls", path)["tensors"]], ["wte.weight", "b", "lm_head.weight"])
        self.run_tool("merge", path, self.path("one.safetensors"))
        tensors, metadata = read_safetensors(self.path("one.safetensors"))
        self.assertEqual((sorted(tensors), metadata["lm_head.weight"]), (["b", "wte.weight"], "wte.weight"))

    def test_files_are_put_together(self):
        a = self.file("a.safetensors", safetensors([("a", "F32", [1], floats(1))]))
        b = self.file("b.safetensors", safetensors([("b", "F32", [1], floats(2))]))
        self.run_tool("merge", a, b, self.path("ab.npz"))
        self.assertEqual([t["name"] for t in self.run_json("ls", self.path("ab.npz"))["tensors"]], ["a", "b"])
        self.assertIn("[duplicate-key]", self.run_tool("merge", a, a, self.path("aa.safetensors"), code=2)[1])
        self.assertIn("[already-exists]", self.run_tool("merge", a, b, code=2)[1])
        self.assertIn("[invalid-argument]", self.run_tool("merge", a, code=2)[1])

    def test_of_training_checkpoints_the_state_dicts_are_put_together(self):
        one, two = (str(SOURCE / "examples" / name) for name in ("data/net.pt", "import_weights/net.pt"))
        _, err = self.run_tool("merge", one, two, self.path("both.safetensors"))
        self.assertIn('took what lies under "state_dict"', err)
        names = set(read_safetensors(self.path("both.safetensors"))[0])
        self.assertLessEqual({"4.bias", "head.bias"}, names)
        self.run_tool("merge", one, two, self.path("all.safetensors"), "--root", "")
        self.assertEqual(set(read_safetensors(self.path("all.safetensors"))[0]), self.prefixed(names))
        os.mkdir(self.path("s"))
        self.run_tool("shard", two, self.path("s"), "--root", "model", "--shard-size", "1kb")
        self.assertIn("head.bias", [t["name"] for t in self.run_json("ls", self.path("s"))["tensors"]])

    @staticmethod
    def prefixed(names):
        return {("state_dict." if name[0].isdigit() else "model.") + name for name in names}

    def test_sizes_are_read_as_people_write_them(self):
        for size, shards in (("500", 2), ("0.5KB", 2), ("0.5kb", 2), ("1KiB", 1), ("1e3", None), ("-1", None), ("0", None), ("5 GB", None), ("nan", None)):
            arguments = ("convert", self.ten(), self.path("c.safetensors"), "-f", f"--shard-size={size}")
            if shards is None:
                self.assertIn("no size", self.run_tool(*arguments, code=2)[1])
            else:
                self.assertEqual(len(self.run_json(*arguments)["output"]["shards"]), shards, size)

    def test_convert_writes_shards(self):
        report = self.run_json("convert", self.ten(), self.path("c.safetensors"), "--dtype", "f16", "--shard-size", "100B")
        self.assertEqual((len(report["output"]["shards"]), report["cast"]), (5, 10))
        out, _ = self.run_tool("convert", self.ten(), self.path("c.safetensors"), "--shard-size", "1KB", "-f")
        self.assertIn("(1 shard)", out)
        self.assertEqual(len([f for f in os.listdir(self.folder) if f.startswith("c-")]), 1)
        self.assertIn("no size", self.run_tool("convert", self.ten(), self.path("d.safetensors"), "--shard-size", "5 GB", code=2)[1])
        self.assertIn("[unsupported]", self.run_tool("convert", self.ten(), self.path("d.pt"), "--to", "torch-zip", "--shard-size", "5GB", code=2)[1])

    def test_an_output_that_is_a_folder_is_told_what_to_ask_for(self):
        _, err = self.run_tool("convert", self.ten(), self.path("new") + "/", code=2)
        self.assertIn("is a folder: name a file in it, or ask for shards (--shard-size", err)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_burn_and_numpy_files_convert(self):
        for name in ("net.mpk", "net.mpk.gz", "net.bpk"):
            listed = self.run_json("ls", str(BURN / name))
            self.assertEqual(len(listed["tensors"]), 11)
            target = self.path(name + ".safetensors")
            self.run_tool("convert", str(BURN / name), target)
            self.assertEqual(read_safetensors(target)[0]["mask"], ("BOOL", [3], b"\1\0\1"))
            self.run_tool("convert", target, self.path("back-" + name))
            self.run_tool("convert", self.path("back-" + name), self.path("again.safetensors"), "-f")
            self.assertEqual(read_safetensors(self.path("again.safetensors"))[0], read_safetensors(target)[0])
        _, err = self.run_tool("convert", str(BURN / "net.bpk"), self.path("x.npz"), "--adapter", "pytorch", code=2)
        self.assertIn("BF16", err)
        self.run_tool("convert", str(BURN / "net.bpk"), self.path("x.npz"), "--adapter", "pytorch", "--dtype", "f32")
        self.run_tool("scan", self.path("x.npz"))
        self.run_tool("verify", str(BURN / "net.bpk"), code=0)


class Faults(CliTest):
    """A set of shards is replaced; whatever happens, what its index leads to is the old one or the new one, whole."""

    def setUp(self):
        super().setUp()
        self.old = self.make("old.safetensors", 1)
        self.new = self.make("new.safetensors", 1000)
        os.mkdir(self.path("set"))
        self.run_tool("shard", self.old, self.path("set"), "--size", "20KB")
        shutil.copytree(self.path("set"), self.path("before"))

    def make(self, name, first):
        return self.file(name, safetensors([(f"t{i}", "F32", [2000], floats(*[float(first + i)] * 2000)) for i in range(8)]))

    def state(self):
        """Which set the folder holds, read by Python's own means."""
        index = json.loads(pathlib.Path(self.path("set/model.safetensors.index.json")).read_text())["weight_map"]
        merged = {}
        for shard in set(index.values()):
            merged.update(read_safetensors(self.path("set/" + shard))[0])
        self.assertEqual(set(merged), set(index))
        for name, path in (("old", self.old), ("new", self.new)):
            if merged == read_safetensors(path)[0]:
                return name
        self.fail("neither old nor new")

    def restore(self):
        shutil.rmtree(self.path("set"))
        shutil.copytree(self.path("before"), self.path("set"))

    def assert_nothing_else_is_left(self, where=""):
        index = json.loads(pathlib.Path(self.path("set/model.safetensors.index.json")).read_text())
        self.assertEqual(set(os.listdir(self.path("set"))), set(index["weight_map"].values()) | {"model.safetensors.index.json"}, where)

    def test_a_broken_index_leaves_nothing_of_its_set_when_it_is_replaced(self):
        pathlib.Path(self.path("set/model.safetensors.index.json")).write_text("{")
        pathlib.Path(self.path("set/model-notes.safetensors")).write_text("somebody's")
        self.run_tool("shard", self.new, self.path("set"), "--size", "20KB", "-f")
        os.remove(self.path("set/model-notes.safetensors"))  # not named as shards are: still there
        self.assert_nothing_else_is_left()

    def test_temporaries_of_dead_processes_are_swept_and_those_of_the_living_are_not(self):
        dead = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:signal=KILL:when=2", BALLAST, "shard", self.new, self.path("set"), "--size", "20KB", "-f"],
                                stderr=subprocess.DEVNULL) if shutil.which("strace") else self.skipTest("no strace")
        dead.wait()
        left = [name for name in os.listdir(self.path("set")) if name.endswith(".tmp")]
        self.assertNotEqual(left, [])
        parts = left[0].rsplit("-", 2)
        living = f"{parts[0]}-{os.getpid():x}-{parts[2]}"
        pathlib.Path(self.path("set/" + living)).write_text("")
        self.run_tool("shard", self.new, self.path("set"), "--size", "20KB", "-f")
        self.assertEqual([name for name in os.listdir(self.path("set")) if name.endswith(".tmp")], [living])

    def count(self, call):
        """How often a run makes this call on temporaries and names of the set."""
        log = self.path("calls")
        subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", f"trace={call}", BALLAST, "shard", self.new, self.path("set"), "--size", "20KB", "-f", "-j", "1", "-q"],
                       capture_output=True, env=environment(), check=True)
        self.restore()
        return sum(call + "(" in line for line in pathlib.Path(log).read_text().splitlines())

    def test_every_call_may_fail_and_every_moment_may_be_the_last(self):
        if shutil.which("strace") is None:
            self.skipTest("no strace")
        points = 0
        outcomes = {"old": 0, "new": 0}
        for call, error in (("fsync", "EIO"), ("renameat2", "EACCES"), ("rename", "EACCES"), ("fallocate", "ENOSPC"), ("pwrite64", "ENOSPC"), ("copy_file_range", None)):
            for number in range(1, self.count(call) + 1):
                for fault in ([f"error={error}"] if error else []) + ["signal=KILL"]:
                    command = [BALLAST, "shard", self.new, self.path("set"), "--size", "20KB", "-f", "-j", "1", "-q"]
                    run = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={number}"] + command,
                                         capture_output=True, text=True, env=environment())
                    where = f"{call} {number} {fault}: {run.stderr}"
                    state = self.state()
                    outcomes[state] += 1
                    points += 1
                    if fault.startswith("error") and run.returncode != 0:
                        self.assertEqual(run.returncode, 2, where)
                        leftover = [f for f in os.listdir(self.path("set")) if f.endswith(".tmp")]
                        self.assertEqual(leftover, [], where)
                        if state == "old":
                            self.assertEqual(sorted(os.listdir(self.path("set"))), sorted(os.listdir(self.path("before"))), where)
                    if fault == "signal=KILL" and "rename" in call:  # between the names of a set
                        again = subprocess.run(command, capture_output=True, text=True, env=environment())
                        self.assertEqual(again.returncode, 0, where + again.stderr)
                        self.assertEqual(self.state(), "new", where)
                        self.assert_nothing_else_is_left(where)
                    self.restore()
        self.assertGreater(points, 40)
        self.assertGreater(outcomes["old"], 0)
        print(f"{points} faults: {outcomes}")

    def test_a_limit_on_file_size_leaves_the_old_set(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        # A build that counts its lines (scripts/coverage) cannot write them all either.
        limited = environment(GCOV_PREFIX=self.path("counts"))
        run = subprocess.run([BALLAST, "shard", self.new, self.path("set"), "--size", "20KB", "-f"], preexec_fn=limit, capture_output=True, text=True, env=limited)
        self.assertEqual(run.returncode, 2)
        self.assertIn("[no-space]", run.stderr)
        self.assertEqual(self.state(), "old")
        self.assertEqual(sorted(os.listdir(self.path("set"))), sorted(os.listdir(self.path("before"))))


if __name__ == "__main__":
    unittest.main()
