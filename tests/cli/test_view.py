# SPDX-License-Identifier: Apache-2.0
"""`ballast view`: what its endpoints say is what the other commands, pickletools and json say, for every format."""
import io
import json
import math
import os
import pickletools
import re
import struct
import subprocess
import unittest
import zipfile

from cli_testing import BALLAST, SOURCE, CliTest, environment, floats, safetensors
from view_testing import View

FIXTURES = SOURCE / "tests/fixtures"


def sample():
    """Files of every format: all of the rare ones, some of the many."""
    rare = [p for p in sorted(FIXTURES.rglob("*")) if p.suffix in (".safetensors", ".bpk", ".mpk", ".gz", ".onnx", ".npz", ".npy", ".ptl")]
    many = [p for p in sorted(FIXTURES.rglob("*")) if p.suffix in (".pt", ".pth", ".pkl", ".tar", ".ckpt", ".bin")]
    return rare + many[::60] + [p for p in many if p.suffix == ".tar"][::4]


def number(value):
    """As --json has it: what is not finite is null."""
    return None if isinstance(value, str) else value


class Walk:
    """Every endpoint of one file, compared."""

    def __init__(self, test, view, path, file=0):
        self.test, self.view, self.path, self.base = test, view, str(path), f"files/{file}/"
        self.listed = test.run_json("ls", self.path)
        self.file = view.api("files")["files"][file]

    def get(self, path, /, **query):
        return self.view.api(self.base + path, **query)

    def all(self):
        self.files()
        self.names()
        self.treemap()
        self.layout()
        self.scan()
        for number_ in range(min(3, len(self.listed["tensors"]))):
            self.tensor(number_)
        if self.file["has_objects"]:
            self.objects()
        if self.file["has_onnx"]:
            self.onnx()

    def files(self):
        eq, tensors = self.test.assertEqual, self.listed["tensors"]
        eq(self.file["format"], self.listed["format"])
        eq(self.file["tensors"], len(tensors))
        eq(sum(row["tensors"] for row in self.file["dtypes"]), len(tensors))
        eq({row["dtype"] for row in self.file["dtypes"]}, {t["dtype"] for t in tensors})
        eq(self.file["tensor_bytes"], sum(t["bytes"] for t in tensors if "tied_to" not in t))
        eq(len(self.file["notes"]), len(self.listed["notes"]))
        eq(self.file["metadata_total"], len(self.listed["metadata"]))

    def check_row(self, row):
        tensor = self.listed["tensors"][row["n"]]
        self.test.assertEqual([row["dtype"], row["shape"], row["bytes"]], [tensor["dtype"], tensor["shape"], tensor["bytes"]])
        self.test.assertTrue(row["path"].endswith(row["label"]) or "#" in row["path"], row)

    def leaves(self, path, fold):
        """Numbers of all tensors below; every group's sums are those of its parts."""
        answer = self.get("tree", path=path, fold=fold, limit=5000)
        self.test.assertEqual(len(answer["rows"]), answer["total"])
        found = []
        for row in answer["rows"]:
            if row["kind"] == "tensor":
                self.check_row(row)
                found.append(row["n"])
                continue
            below = self.leaves(row["path"], fold)
            first_names = [n for n in below if "tied_to" not in self.listed["tensors"][n]]
            self.test.assertEqual(row["tensors"], len(below), row)
            self.test.assertEqual(row["bytes"], sum(self.listed["tensors"][n]["bytes"] for n in first_names), row)
            self.test.assertEqual(row["bytes"], sum(row["dtypes"].values()))
            found += below
        return found

    def names(self):
        count = len(self.listed["tensors"])
        for fold in (0, 1):
            self.test.assertEqual(sorted(self.leaves("", fold)), list(range(count)))
        everything = self.get("find", limit=5000)
        self.test.assertEqual(everything["total"], count)
        self.test.assertEqual([row["n"] for row in everything["rows"]], list(range(count))[:5000])
        for row in everything["rows"]:
            self.check_row(row)
        for word in {t["name"][:4] for t in self.listed["tensors"][:3]}:
            expected = sum(word.lower() in t["name"].lower() for t in self.listed["tensors"])
            if word.isalnum():
                self.test.assertEqual(self.get("find", q=word)["total"], expected, word)
                self.test.assertEqual(self.get("find", q=word, mode="regex")["total"], sum(word in t["name"] for t in self.listed["tensors"]))
        by_bytes = [row["bytes"] for row in self.get("find", sort="bytes", limit=5000)["rows"]]
        self.test.assertEqual(by_bytes, sorted(by_bytes, reverse=True))

    def treemap(self):
        content = self.get("treemap", w=400, h=300)
        (size,) = struct.unpack("<I", content[:4])
        head = json.loads(content[4 : 4 + size])
        boxes = list(struct.iter_unpack("<6if", content[4 + size :]))
        area = sum(w * h for _, _, w, h, _, _, _ in boxes)
        for x, y, w, h, node, dtype, value in boxes:
            self.test.assertTrue(math.isnan(value))  # nobody asked for a colour
            self.test.assertTrue(x >= 0 and y >= 0 and w > 0 and h > 0 and x + w <= 400 and y + h <= 300)
            if node >= 0:
                self.test.assertEqual(head["dtypes"][dtype], self.listed["tensors"][node]["dtype"])
            else:
                self.test.assertIn(head["groups"][-node - 1], head["groups"])
        self.test.assertLessEqual(len(boxes), 4000)
        if self.file["tensor_bytes"] > 0:
            self.test.assertEqual(area, 400 * 300)  # no gap, no overlap

    def layout(self):
        layout = self.get("layout")
        for file, size in enumerate(layout["file_bytes"]):
            at = 0
            for part in (p for p in layout["parts"] if p["file"] == file):
                self.test.assertEqual(part["offset"], at)
                at += part["bytes"]
            self.test.assertEqual(at, size)
        for part in layout["parts"]:
            if part["n"] is not None:
                self.test.assertLessEqual(part["bytes"], self.listed["tensors"][part["n"]]["bytes"])

    def scan(self):
        answer = self.get("scan")
        scanned = json.loads(self.test.run_any("scan", self.path, "--no-checksums", "--json"))
        self.test.assertEqual(answer["verdict"], scanned["verdict"])
        self.test.assertEqual(self.file["verdict"], scanned["verdict"])
        if answer["verdict"] != "clean":
            self.test.assertTrue(answer["findings"])
        if zipfile.is_zipfile(self.path) and self.listed["format"] in ("torch-zip", "torchscript"):
            with zipfile.ZipFile(self.path) as archive:
                for entry, row in enumerate(answer["entries"]):
                    self.pickle(entry, archive.read(row["name"]))

    def pickle(self, entry, content):
        """Page by page, the opcodes and places of Python's own disassembler."""
        rows, offset = [], 0
        while offset is not None:
            page = self.get("pickle", entry=entry, offset=offset, limit=300)
            rows += page["rows"]
            offset = page["next"]
            self.test.assertEqual(page["total_bytes"], len(content))
        expected = []
        stream = io.BytesIO(content)
        for opcode, argument, at in pickletools.genops(stream):
            expected.append((at, opcode.name))
            row = rows[len(expected) - 1]
            if isinstance(argument, int) and abs(argument) < 2**63:
                self.test.assertEqual(int(row["argument"]), argument)
            if opcode.name == "GLOBAL":
                self.test.assertEqual(row["argument"], argument)
        self.test.assertEqual([(row["offset"], row["opcode"]) for row in rows[: len(expected)]], expected)

    def tensor(self, n):
        eq = self.test.assertEqual
        listed = self.listed["tensors"][n]
        about = self.get(f"t/{n}")
        eq([about["dtype"], about["shape"], about["bytes"]], [listed["dtype"], listed["shape"], listed["bytes"]])
        name = listed["name"]
        if about["note"] and "shape only" in about["note"]:
            return
        self.test.assertEqual(self.view.done(self.get_job(n))["state"], "done")
        summary = self.get(f"t/{n}/summary", exact=1)
        self.test.assertTrue(summary["exact"])
        stats = next(t for t in self.stats() if t["name"] == name)
        eq([number(summary[key]) for key in ("min", "max", "mean", "std")], [stats[key] for key in ("min", "max", "mean", "std")], name)
        eq([summary["nan"], summary["pos_inf"] + summary["neg_inf"], summary["zeros"], summary["sampled"]], [stats[key] for key in ("nan", "inf", "zeros", "count")])
        eq(sum(summary["histogram"]["counts"]) + summary["histogram"]["below"] + summary["histogram"]["above"] + summary["nan"], stats["count"])
        if re.fullmatch(r"[\w.]+", name):
            shown = self.test.run_json("show", self.path, name)
            eq(about["offset"], shown["offset"])
            self.values(n, about, shown)

    def get_job(self, n):
        return self.view.api(self.base + f"t/{n}/exact", "POST")["job"]

    def stats(self):
        if not hasattr(self, "_stats"):
            self._stats = self.test.run_json("stats", self.path)["tensors"]
        return self._stats

    def values(self, n, about, shown):
        plane = self.get(f"t/{n}/plane")
        if not shown["values"] or plane["cols"] == 0:
            return
        rows = self.get(f"t/{n}/values", w=64, h=64)["rows"]
        self.test.assertTrue(all(len(row) <= 64 for row in rows))
        for ours, theirs in zip(rows[0], shown["values"]):
            if theirs is not None and len(about["shape"]) <= 2:
                self.test.assertTrue(math.isclose(float(ours), theirs, rel_tol=1e-4, abs_tol=1e-40), (ours, theirs))

    def objects(self):
        shown = json.loads(self.test.run_any("show", self.path, "--json", "--depth", "2"))
        top = self.get("objects", limit=5000)
        self.test.assertEqual(len(top["rows"]), top["total"])
        children = {row["path"]: row for row in shown["values"] if row["path"]}
        for row in top["rows"]:
            if row["kind"] == "tensor" and row["n"] is not None:
                self.test.assertEqual(row["text"].split(" ")[0], self.listed["tensors"][row["n"]]["dtype"])
            if row["children"]:
                below = self.get("objects", path=row["path"], limit=5000)
                self.test.assertEqual(below["total"], row["children"])
                self.test.assertEqual(len(below["rows"]), min(5000, below["total"]))
        if all("." not in row["key"] for row in top["rows"]):
            self.test.assertEqual({row["key"] for row in top["rows"]}, {path for path in children if "." not in path})

    def onnx(self):
        info = self.test.run_json("onnx", "info", self.path)
        answer = self.get("onnx", limit=5000)
        self.test.assertEqual({row["op"].split(":")[-1]: row["count"] for row in answer["operators"]}, {row["name"]: row["count"] for row in info["operators"]})
        self.test.assertEqual(len(answer["nodes"]), answer["total"])
        self.test.assertEqual([v["name"] for v in answer["inputs"]], [v["name"] for v in info["inputs"]])
        names = {row["name"] for row in info["operators"]}
        for node in answer["nodes"]:
            self.test.assertIn(node["op"].split(":")[-1], names)


class Endpoints(CliTest):
    def run_any(self, *arguments):
        """stdout, whatever the exit code."""
        return subprocess.run([BALLAST, *arguments], capture_output=True, env=environment(), timeout=120).stdout.decode()

    def test_every_endpoint_says_what_the_commands_say_for_every_format(self):
        formats = set()
        walked = 0
        for path in sample():
            listing = json.loads(self.run_any("ls", str(path), "--json"))
            if "error" in listing:
                continue
            with self.subTest(path.name), View(path) as view:
                Walk(self, view, path).all()
                formats.add(listing["format"])
                walked += 1
        print(f"{walked} files of {len(formats)} formats: {' '.join(sorted(formats))}")
        self.assertLessEqual({"safetensors", "torch-zip", "torch-legacy", "torch-tar", "pickle", "torchscript", "bpk", "mpk", "onnx"} - formats, set())

    def test_every_format_that_can_be_written_gives_the_same_numbers(self):
        source = str(FIXTURES / "import/layers.safetensors")
        reference = None
        for name in ("a.safetensors", "a.record", "a.pt", "a.npz", "a.bpk", "a.mpk", "a.mpk.gz", "shards"):
            path = self.path(name)
            if name == "shards":
                os.mkdir(path)
                self.run_tool("convert", source, path + "/model.safetensors", "--shard-size", "1kB")
            else:
                self.run_tool("convert", source, path, "--layout", "pytorch")
            with self.subTest(name), View(path) as view:
                walk = Walk(self, view, path)
                walk.all()
                sums = {}
                for row in view.api("files/0/find", limit=5000)["rows"]:
                    summary = view.api(f"files/0/t/{row['n']}/summary")
                    sums[row["path"]] = [summary[key] for key in ("min", "max", "zeros", "elements")]
                reference = reference or sums
                self.assertEqual(sums, reference)

    def test_the_changes_are_those_of_diff(self):
        a = self.file("a.safetensors", safetensors([("layers.0.q.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("layers.1.q.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("same", "F32", [1], floats(5)),
                                                    ("gone", "F32", [1], floats(6)), ("old.name", "F32", [3], floats(7, 8, 9)), ("shape", "F32", [2], floats(1, 1)), ("inf", "F32", [1], floats(1))]))
        b = self.file("b.safetensors", safetensors([("layers.0.q.weight", "F32", [2, 2], floats(1, 2, 3, 5)), ("layers.1.q.weight", "F32", [2, 2], floats(0, 0, 0, 4)), ("same", "F32", [1], floats(5)),
                                                    ("new.name", "F32", [3], floats(7, 8, 9)), ("more", "F32", [1], floats(2)), ("shape", "F32", [1, 2], floats(1, 1)), ("inf", "F32", [1], floats(math.inf))]))
        expected = {t["name"]: t for t in self.run_json("diff", a, b, code=1)["tensors"]}
        with View(a, b) as view:
            answer = view.diff(sort="file")
            self.assertEqual(answer["total"], len(expected))
            self.assertEqual([answer[k] for k in ("changed", "equal", "only_a", "only_b", "renamed")], [4, 1, 1, 1, 1])
            kinds = {"values": "changed", "only-a": "only_a", "only-b": "only_b"}
            for index, row in enumerate(answer["rows"]):
                theirs = expected[row["name"]]
                self.assertEqual(row["i"], index)
                self.assertEqual(row["kind"], kinds.get(theirs["change"], theirs["change"]))
                for key in ("rel_l2", "cosine", "max_abs", "differing"):
                    if key in theirs:
                        self.assertEqual(number(row[key]), theirs[key], (row, key))
                for side, path, key in (("n_a", a, "a"), ("n_b", b, "b")):
                    if theirs[key] is None:
                        self.assertIsNone(row[side])
                    else:
                        found = view.api(f"files/{0 if key == 'a' else 1}/t/{row[side]}")
                        self.assertEqual(found["name"], row["name"] if key == "a" else row["name_b"])
            by_name = {row["name"]: row for row in answer["rows"]}
            self.assertEqual({name for name, row in by_name.items() if row["differing"] is None}, {"gone", "more", "shape"})  # nothing to count
            self.assertEqual(by_name["old.name"]["name_b"], "new.name")
            self.assertEqual([by_name["layers.1.q.weight"][k] for k in ("layer", "role")], [1, "q.weight"])
            self.assertEqual(by_name["inf"]["max_abs"], "Inf")
            sizes = [number(row["rel_l2"]) for row in view.diff(sort="rel_l2")["rows"] if row["rel_l2"] is not None]
            self.assertEqual(sizes, sorted(sizes, reverse=True))
            i = by_name["layers.1.q.weight"]["i"]
            self.assertEqual(view.tile(f"diff/t/{i}/tile", stat="delta")[1], [(1, 2), (3, 0)])
            self.assertEqual(view.tile(f"diff/t/{i}/tile", stat="sign")[1], [(1, 1), (1, 0)])
            self.assertEqual(view.api(f"diff/t/{i}/values")["rows"], [["1", "2"], ["3", "0"]])
            self.assertEqual(view.api(f"diff/t/{i}/plane")["cols"], 2)
            view.api(f"diff/t/{by_name['gone']['i']}/tile", status=400)
            view.api("diff/t/99/tile", status=404)

    def test_one_file_has_no_changes(self):
        with View(self.small()) as view:
            view.api("diff", status=404)

    def test_searches_by_shape_size_and_dtype(self):
        names = [("a.weight", "F32", [4, 8]), ("a.bias", "F32", [8]), ("b.weight", "F16", [4, 2]), ("B.other", "I64", [300])]
        sizes = {"F32": 4, "F16": 2, "I64": 8}
        path = self.file("s.safetensors", safetensors([(n, d, s, bytes(math.prod(s) * sizes[d])) for n, d, s in names]))
        cases = {"": 4, "weight": 2, "b.": 2, "shape:4,*": 2, "shape:*": 2, "shape:8": 1, "size:>1k": 1, "size:<=16": 1, "size:128": 1, "dtype:f32": 2, "dtype:F32 bias": 1, "a. weight": 1, "nothing": 0}
        with View(path) as view:
            for q, expected in cases.items():
                self.assertEqual(view.api("files/0/find", q=q)["total"], expected, q)
            self.assertEqual(view.api("files/0/find", q="awt", mode="fuzzy")["total"], 1)
            self.assertEqual(view.api("files/0/find", q="^[ab]\\.", mode="regex")["total"], 3)
            self.assertEqual(view.api("files/0/find", dtype="I64")["total"], 1)
            for wrong in ({"q": "(", "mode": "regex"}, {"q": "shape:x"}, {"q": "size:>x"}, {"q": "dtype:x"}, {"sort": "x"}, {"limit": "-1"}, {"offset": "a"}):
                self.assertIn("message", view.api("files/0/find", status=400, **wrong)["error"])

    def test_layers_fold_and_unfold(self):
        tensors = [(f"model.layers.{i}.{part}.weight", "F32", [1], floats(i)) for i in range(12) for part in ("q", "k")] + [("model.norm", "F32", [1], floats(1))]
        with View(self.file("l.safetensors", safetensors(tensors))) as view:
            top = view.api("files/0/tree", path="model")["rows"]
            self.assertEqual([(row["label"], row.get("count")) for row in top], [("layers.#", 12), ("norm", None)])
            below = view.api("files/0/tree", path=top[0]["path"])["rows"]
            self.assertEqual([(row["path"], row["count"], row["tensors"]) for row in below], [(f"model.layers.#.{p}.weight", 12, 12) for p in "qk"])
            self.assertEqual([row["n"] for row in view.api("files/0/tree", path=below[1]["path"])["rows"]], list(range(1, 24, 2)))
            plain = view.api("files/0/tree", path="model.layers", fold=0)["rows"]
            self.assertEqual([row["label"] for row in plain], [str(i) for i in range(12)])
            view.api("files/0/tree", path="model.nothing", status=404)

    def numbers(self, view, path, fold):
        found = []
        for row in view.api("files/0/tree", path=path, fold=fold, limit=5000)["rows"]:
            found += [row["n"]] if row["kind"] == "tensor" else self.numbers(view, row["path"], fold)
        return found

    def test_hostile_names_arrive_escaped_and_lead_back(self):
        names = ["<script>alert(1)</script>", "\u202egnp.exe", "", "x" * 100_000, "\x1b[31mred", "..", "a..b", "#", "layers.#.x", "@1", "a.\u2028.b", "\"'`", "%41", "a b+c", "ö.中文", "." * 300]
        path = self.file("h.safetensors", safetensors([(name, "F32", [1], floats(i)) for i, name in enumerate(names)]))
        with View(path) as view:
            walk = Walk(self, view, path)
            for fold in (0, 1):
                self.assertEqual(sorted(self.numbers(view, "", fold)), list(range(len(names))))
            walk.treemap()
            text = json.dumps([view.api("files/0/find", limit=100), view.api("files/0/tree", limit=100), view.api("files/0/layout"), view.api("files")], ensure_ascii=False)
            for c in ("\x1b", "\u202e", "\u2028", "x" * 1000):
                self.assertNotIn(c, text)
            self.assertIn("<script>", text)  # as text: the page puts it nowhere else

    def test_an_encrypted_file_is_looked_at_with_its_identity(self):
        key, sealed = self.path("key.txt"), self.path("s.safetensors.age")
        recipient = self.run_json("keygen", "-o", key)["recipient"]
        self.run_tool("convert", self.small(), sealed, "--recipient", recipient)
        with View(sealed, options=["--identity", key]) as view:
            rows = {row["path"]: row["n"] for row in view.api("files/0/find")["rows"]}
            self.assertEqual(view.api(f"files/0/t/{rows['b.weight']}/values")["rows"], [["1", "2"], ["3", "4"]])
            self.assertEqual(view.api(f"files/0/t/{rows['steps']}/values")["rows"], [["7"]])
        _, errors = self.run_tool("view", sealed, "--no-open", code=2)
        self.assertIn("[cannot-decrypt]", errors)

    def test_downloads_are_what_the_tensor_holds(self):
        values = floats(*[i / 7 for i in range(12)])
        with View(self.file("d.safetensors", safetensors([("a/b\"c", "F32", [3, 4], values), ("half", "BF16", [2], b"\x80\x3f\x00\x40"), ("big", "U8", [1001, 1000], bytes(1001000))]))) as view:
            answer, content = view.request("/api/1/files/0/t/0/npy")
            self.assertEqual(answer.getheader("Content-Disposition"), 'attachment; filename="a_b_c.npy"')
            self.assertEqual(content[:8], b"\x93NUMPY\x01\x00")
            (size,) = struct.unpack("<H", content[8:10])
            self.assertEqual((10 + size) % 64, 0)
            self.assertEqual(content[10 : 10 + size].strip(), b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,4,), }")
            self.assertEqual(content[10 + size :], values)
            self.assertEqual(view.api("files/0/t/1/npy")[-8:], floats(1, 2))  # NumPy has no BF16
            table = view.api("files/0/t/0/csv").decode()
            self.assertEqual([struct.pack("<f", float(v)) for v in table.replace("\n", ",").split(",")[:-1]], [values[i : i + 4] for i in range(0, 48, 4)])
            view.api("files/0/t/2/csv", status=400)


if __name__ == "__main__":
    unittest.main()
