# SPDX-License-Identifier: Apache-2.0
"""PyTorch files at the command line: listed, shown, converted both ways, verified and scanned. Expected values: torch itself
(tests/fixtures/*/expect.json) and the list of hostile files (tests/attacks)."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import zipfile

from cli_testing import BALLAST, SOURCE, CliTest, environment, read_safetensors

CURRENT = SOURCE / "tests/fixtures/torch_current"
ATTACKS = pathlib.Path(os.environ["BALLAST_ATTACKS"])  # what tests/attacks/make.py wrote


class Listed(CliTest):
    def files(self):
        for name, expected in sorted(json.loads((CURRENT / "expect.json").read_text())["files"].items()):
            yield str(CURRENT / "files" / name), expected

    def test_ls_names_what_torch_loads(self):
        checked = 0
        for path, expected in self.files():
            if "tensors" not in expected:
                continue
            listed = [(t["name"], t["dtype"], t["shape"]) for t in self.run_json("ls", path)["tensors"]]
            self.assertEqual(listed, [(t["name"], t["dtype"], t["shape"]) for t in expected["tensors"]], path)
            checked += 1
        self.assertGreater(checked, 10)

    def test_safetensors_made_of_pytorch_files_say_so_as_transformers_asks(self):
        source = str(SOURCE / "examples/data/net.pt")
        for steps in ([], ["--dtype", "f16"], ["--rename", "^=x."], ["--root", ""], ["--exclude", "bias"]):
            self.run_tool("convert", source, self.path("o.safetensors"), "-f", *steps)
            self.assertEqual(self.run_json("meta", self.path("o.safetensors"))["metadata"]["format"], "pt", steps)
        self.run_tool("shard", source, self.path("s") + "/", "--shard-size", "1KB")
        for shard in pathlib.Path(self.path("s")).glob("*.safetensors"):
            self.assertEqual(self.run_json("meta", str(shard))["metadata"]["format"], "pt")
        self.run_tool("convert", source, self.path("part.bin"), "--root", "state_dict")
        names = [t["name"] for t in self.run_json("ls", self.path("part.bin"))["tensors"]]
        index = self.file("pytorch_model.bin.index.json", json.dumps({"weight_map": dict.fromkeys(names, "part.bin")}).encode())
        self.run_tool("convert", index, self.path("o.safetensors"), "-f")
        self.assertEqual(self.run_json("meta", self.path("o.safetensors"))["metadata"], {"format": "pt"})
        for between in ("n.npz", "b.bpk"):  # which nobody said to be PyTorch's
            self.run_tool("convert", source, self.path(between), "--layout", "pytorch")
            self.run_tool("convert", self.path(between), self.path("o.safetensors"), "-f")
            self.assertNotIn("format", self.run_json("meta", self.path("o.safetensors"))["metadata"] or {})

    def test_convert_to_safetensors_keeps_every_bit(self):
        checked = 0
        for path, expected in self.files():
            tensors = {t["name"]: t for t in expected.get("tensors", [])}
            target = self.path("out.safetensors")
            done = subprocess.run([BALLAST, "convert", path, target, "-f", "--root", "", "-q"], capture_output=True, text=True, env=environment(), timeout=60)
            if done.returncode == 2:  # what Safetensors has no dtype for, or no data
                self.assertRegex(done.stderr, r"\[(not-representable|invalid-argument|unsupported)\]", path)
                continue
            written, _ = read_safetensors(target)
            for name, (dtype, shape, data) in written.items():
                self.assertEqual((dtype, shape), (tensors[name]["dtype"], tensors[name]["shape"]), path)
                if tensors[name].get("sha256"):
                    self.assertEqual(hashlib.sha256(data).hexdigest(), tensors[name]["sha256"], (path, name))
                    checked += 1
            self.verify(path)
        self.assertGreater(checked, 20)

    def verify(self, path):
        done = subprocess.run([BALLAST, "verify", path, "--allow-zeros"], capture_output=True, env=environment(), timeout=60)
        self.assertIn(done.returncode, (0, 1), (path, done.stderr))  # values of every kind are in there; it must be able to look


class RoundTrip(CliTest):
    def test_safetensors_to_pt_and_back(self):
        source = self.small()
        for format, name in (("torch-zip", "a.pt"), ("torch-legacy", "b.pt")):
            self.run_tool("convert", source, self.path(name), "--to", format)
            self.assertEqual(self.run_json("ls", self.path(name))["format"], format)
            self.run_tool("convert", self.path(name), self.path("back.safetensors"), "-f")
            self.assertEqual(read_safetensors(self.path("back.safetensors"))[0], read_safetensors(source)[0])

    def test_a_flipped_bit_in_a_zip_is_found_by_its_checksum(self):
        self.run_tool("convert", self.small(), self.path("a.pt"))
        with zipfile.ZipFile(self.path("a.pt")) as archive:
            entry = next(e for e in archive.infolist() if e.filename.endswith("data/0"))
        content = bytearray(pathlib.Path(self.path("a.pt")).read_bytes())
        if entry.CRC == 0:
            self.skipTest("written without checksums")
        at = content.index(archive_data(self.path("a.pt"), entry.filename), entry.header_offset)
        content[at] ^= 1
        broken = self.file("broken.pt", bytes(content))
        result = self.run_json("verify", broken, code=1)
        self.assertEqual([f["kind"] for f in result["findings"]], ["checksum"])
        self.run_tool("scan", broken, code=1)
        self.run_tool("scan", broken, "--no-checksums")


def archive_data(path, name):
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


class Scanned(CliTest):
    @classmethod
    def setUpClass(cls):
        table = ATTACKS / "expect.tsv"
        rows = [line.split("\t") for line in table.read_text().splitlines() if line and not line.startswith("file\t")]
        cls.attacks = [(str(table.parent / row[0]), row[1]) for row in rows if not row[0].endswith(".index.json")]

    def test_calls_that_run_code_are_named_and_the_file_is_refused(self):
        dangerous = [path for path, code in self.attacks if code == "forbidden-global"]
        self.assertGreater(len(dangerous), 20)
        for path in dangerous[::5]:
            result = self.run_json("scan", path, code=1)
            self.assertFalse(result["clean"])
            self.assertEqual(result["verdict"], "danger")
            self.assertIn("forbidden-global", [f["code"] for f in result["findings"]], path)
            _, err = self.run_tool("ls", path, code=2)
            self.assertIn("[forbidden-global]", err, path)
            self.assertEqual(len(err.splitlines()), 1, path)
        out, _ = self.run_tool("scan", dangerous[0], code=1)
        self.assertIn(": danger: ", out)
        self.assertIn("byte ", out)

    def test_hostile_files_end_in_one_line_and_an_exit_code(self):
        for path, code in self.attacks[::11]:  # all of them are read by tests/formats; here it is a process for each
            for command in (["ls", path], ["verify", path], ["scan", path]):
                done = subprocess.run([BALLAST, *command], capture_output=True, env=environment(), timeout=60)
                self.assertIn(done.returncode, (0, 1, 2), (command, done.stderr))
                self.assertNotIn(b"\x1b", done.stdout + done.stderr, path)
                if done.returncode == 2:
                    self.assertRegex(done.stderr.decode(), r"\Aballast: [^\n]* \[[a-z0-9-]+\]\n\Z", command)
            if code == "ok":
                self.assertIn(b"clean" if done.returncode == 0 else b"unknown", done.stdout, path)
                self.assertLess(done.returncode, 2, path)

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_reading_hostile_files_starts_no_program_opens_no_socket_and_writes_nothing(self):
        watched = "execve,execveat,fork,vfork,socket,connect,open,openat,openat2,creat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,truncate,ftruncate"
        paths = [path for path, _ in self.attacks]
        for command in (["ls"], ["verify"], ["scan"]):
            log = self.path("strace.log")
            for start in range(0, len(paths), 100):
                subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", f"trace={watched}", BALLAST, *command, *paths[start : start + 100]],
                               capture_output=True, env=environment(), timeout=250)
                # A build that counts its lines (scripts/coverage) writes its counts.
                lines = [line for line in pathlib.Path(log).read_text(errors="replace").splitlines() if ".gcda" not in line]
                calls = [line.split(maxsplit=1)[1] for line in lines]
                self.assertTrue(calls[0].startswith("execve("), calls[0])
                opened = [c for c in calls[1:] if c.startswith(("open", "openat"))]
                self.assertGreaterEqual(len(opened), len(paths[start : start + 100]))
                self.assertEqual([c for c in opened if re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", c)], [])
                other = [c for c in calls[1:] if not c.startswith(("open", "openat", "<...", "+++", "---"))]
                self.assertEqual(other, [])

    def test_a_stranger_in_the_file_is_unknown_and_what_is_no_model_is_an_error(self):
        out, _ = self.run_tool("scan", str(ATTACKS / "callable-called-mynet-net.pt"), code=1)
        self.assertIn(": unknown: ", out)
        self.assertRegex(out, r"mynet\.Net +unknown +1 +1 ")
        page = self.file("page.pt", b"<html>not found</html>")
        _, err = self.run_tool("scan", page, code=2)
        self.assertIn("[unknown-format]", err)

    def test_tensors_that_show_more_than_the_file_holds_are_read_when_asked_for(self):
        path = str(ATTACKS / "cost-expanded-often.pt")
        _, err = self.run_tool("ls", path, code=2)
        self.assertIn("[expanded-view]", err)
        self.assertEqual(len(self.run_json("ls", path, "--expansion", "1e6")["tensors"]), 40)

    def test_what_torch_writes_is_clean(self):
        for path in sorted(str(p) for p in (CURRENT / "files").glob("dtype_*.pt")):
            self.assertTrue(self.run_json("scan", path)["clean"], path)


class Training(CliTest):
    """A training checkpoint: epoch, model, optimizer."""

    path_of_file = str(SOURCE / "tests/fixtures/torch/files/train_full.ckpt")

    def test_show_prints_types_and_one_line_values(self):
        shown = self.run_json("show", self.path_of_file, "--all")
        paths = {v["path"]: v for v in shown["values"]}
        self.assertEqual(paths["epoch"]["type"], "int")
        self.assertIsInstance(paths["epoch"]["value"], int)
        self.assertEqual(self.run_json("show", self.path_of_file, "epoch")["values"][0]["value"], paths["epoch"]["value"])
        out, _ = self.run_tool("show", self.path_of_file)
        self.assertRegex(out, rf"epoch +int +{paths['epoch']['value']}\n")
        self.assertIn("torch-zip", out)

    def test_convert_takes_the_state_dict_and_says_so(self):
        target = self.path("model.safetensors")
        _, err = self.run_tool("convert", self.path_of_file, target)
        self.assertRegex(err, r'took what lies under "\w+"')
        root = self.run_json("convert", self.path_of_file, target, "-f")["root"]
        names = set(read_safetensors(target)[0])
        whole = [t["name"] for t in self.run_json("ls", self.path_of_file)["tensors"]]
        self.assertEqual(names, {n[len(root) + 1 :] for n in whole if n.startswith(root + ".")} or names)
        self.run_tool("convert", self.path_of_file, self.path("all.safetensors"), "--root", "")
        self.assertEqual(set(read_safetensors(self.path("all.safetensors"))[0]), set(whole))

    def test_pt_to_pt_keeps_everything(self):
        source = str(SOURCE / "tests/fixtures/torch/files/train_imagenet_example.ckpt")
        self.run_tool("convert", source, self.path("again.pt"))
        before = self.run_json("show", source, "--all")["values"]
        after = self.run_json("show", self.path("again.pt"), "--all")["values"]
        self.assertEqual(after, before)

    def test_pt_to_pt_with_a_flag_is_the_state_dict_that_every_other_format_gets(self):
        source = str(SOURCE / "tests/fixtures/torch/files/train_imagenet_example.ckpt")
        _, err = self.run_tool("convert", source, self.path("weights.pt"), "--state-dict")
        self.assertIn("took what lies under", err)
        self.run_tool("convert", source, self.path("weights.safetensors"))
        self.run_tool("diff", self.path("weights.pt"), self.path("weights.safetensors"), "--root", "")
        self.run_tool("convert", source, self.path("x.pt"), "--state-dict", "--root", "", code=2)
        help_, _ = self.run_tool("convert", "--help")
        self.assertIn("but everything of a .pt that becomes a .pt", " ".join(help_.split()))

    def test_foreign_classes_are_refused_by_path_or_written_as_what_they_are_made_of(self):
        _, err = self.run_tool("convert", self.path_of_file, self.path("again.pt"), code=2)
        self.assertRegex(err, r"args: .*argparse.Namespace.*simplify.*\[not-representable\]")
        self.run_tool("convert", self.path_of_file, self.path("again.pt"), "--simplify")
        values = {v["path"]: v for v in self.run_json("show", self.path("again.pt"), "--all")["values"]}
        before = {v["path"]: v for v in self.run_json("show", self.path_of_file, "--all")["values"]}
        self.assertEqual(values["args"]["type"], "dict")
        self.assertEqual(values["args.lr"]["value"], before["args.lr"]["value"])


if __name__ == "__main__":
    unittest.main()
