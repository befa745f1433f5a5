# SPDX-License-Identifier: Apache-2.0
"""`ballast view`: findings down to the opcode, colours, oddities, and rows that lead to their tensor."""
import json
import os
import pickle
import pickletools
import resource
import shutil
import struct
import tarfile
import unittest

from cli_testing import SOURCE, CliTest, floats, safetensors, tied
from view_testing import View

FIXTURES = SOURCE / "tests/fixtures"


class Findings(CliTest):
    def test_a_pickle_that_runs_code_is_shown_down_to_the_opcode(self):
        class Evil:
            def __reduce__(self):
                return os.system, ("true",)

        path = self.path("evil.pt")
        content = pickle.dumps({"weights": [1, 2], "x": Evil()}, protocol=2)
        with open(path, "wb") as file:
            file.write(content)
        with View(path) as view:
            self.assertEqual(view.api("files")["files"][0]["verdict"], "danger")
            scan = view.api("files/0/scan")
            places = {f["offset"] for f in scan["findings"] if f["level"] == "danger"}
            rows = view.api("files/0/pickle", entry=0)["rows"]
            marked = [row for row in rows if row["finding"] is not None]
            self.assertTrue(any(row["opcode"] == "GLOBAL" and "system" in row["argument"] for row in marked), marked)
            self.assertTrue({row["offset"] for row in marked} & places)
            self.assertEqual([(row["offset"], row["opcode"]) for row in rows], [(at, op.name) for op, _, at in pickletools.genops(content)])

    def test_a_scan_of_very_many_findings_has_an_end_and_begins_with_the_worst(self):
        names = b"".join(b"cmynet\nNet%d\n0" % i for i in range(5000))
        evil = b"cposix\nsystem\n0cposix\npopen\n0"
        for content in (names, b""):
            with View(self.file("many.pkl", content + evil + b"}.")) as view:
                scan = view.api("files/0/scan")
                self.assertEqual(scan["verdict"], "danger")
                levels = [found["level"] for found in scan["findings"]]
                dangers = levels.count("danger")
                self.assertEqual(levels[:dangers], ["danger"] * dangers)
                self.assertLessEqual({"names posix.system", "names posix.popen"}, {found["what"] for found in scan["findings"][:dangers]})
                if not content:
                    self.assertEqual(len(levels), dangers)
                    continue
                self.assertEqual(len(levels), 2001)
                last = scan["findings"][-1]
                self.assertRegex(last["what"], r"^and 3,0\d\d more")
                self.assertEqual((last["entry"], last["offset"]), (None, None))
                rows = view.api("files/0/pickle", entry=0, offset=len(names))["rows"]
                marked = [scan["findings"][row["finding"]]["level"] for row in rows if row["finding"] is not None]
                self.assertEqual(marked, ["danger", "danger"])

    def test_a_table_of_very_many_rows_without_a_column_is_empty(self):
        with View(self.file("empty.safetensors", safetensors([("x", "F32", [2**40, 0], b""), ("y", "F32", [0, 2**62], b"")]))) as view:
            for number, axes in ((0, "0,1"), (0, "1,0"), (1, "0,1"), (1, "1,0")):
                self.assertEqual(view.api(f"files/0/t/{number}/csv", axes=axes), b"")

    def test_a_scan_is_made_once(self):
        path = self.file("once.pkl", b"cposix\nsystem\n0}.")
        with View(path) as view:
            first = view.api("files/0/scan")
            self.assertEqual(first["verdict"], "danger")
            os.remove(path)
            self.assertEqual(view.api("files/0/scan"), first)

    def test_each_of_two_tied_names_leads_to_its_own_row(self):
        tensors = [("a.weight", "F32", [2], floats(1, 2)), ("z", "F32", [1], floats(3))]
        plain = self.file("plain.safetensors", safetensors(tensors + [("b.weight", "F32", [2], floats(1, 5))]))
        ties = self.file("ties.safetensors", tied())
        with View(ties, plain) as view:
            for row in view.diff(sort="file")["rows"]:
                for side, file in (("n_a", 0), ("n_b", 1)):
                    if row[side] is not None:
                        self.assertEqual(view.api(f"files/{file}/t/{row[side]}")["name"], row["name"])

    def boxes(self, view, file=0, **asked):
        """Of each tensor in the treemap the number it is coloured by."""
        content = view.api(f"files/{file}/treemap", w=4000, h=3000, **asked)
        (size,) = struct.unpack("<I", content[:4])
        return {node: value for *_, node, _, value in struct.iter_unpack("<6if", content[4 + size :]) if node >= 0}

    def test_the_treemap_is_coloured_by_what_stats_and_diff_say(self):
        values = [("a.weight", [1.5, -3, 2, 0.25]), ("a.bias", [0, 0]), ("b.weight", [1e-3, 2e-3, -4e-3]), ("c", [7, 7, 7])]
        paths = [self.file(f"{side}.safetensors", safetensors([(name, "F32", [len(v)], floats(*[x + shift * (name == "a.weight") for x in v])) for name, v in values]))
                 for side, shift in (("before", 0), ("after", 0.5))]  # fmt: skip
        stats = {row["name"]: row for row in self.run_json("stats", paths[0])["tensors"]}
        changes = {row["name"]: row for row in self.run_json("diff", paths[0], paths[1], code=1)["tensors"]}
        with View(*paths) as view:
            names = [row["path"] for row in view.api("files/0/find")["rows"]]
            for colour in ("std", "absmax", "change"):
                view.api("files/0/treemap", colour=colour, status=409)  # nobody has read the file yet
            view.done(view.api("files/0/measures", status=202)["job"])
            for colour, said in (("std", lambda row: row["std"]), ("absmax", lambda row: max(-row["min"], row["max"]))):
                found = self.boxes(view, colour=colour)
                self.assertEqual(len(found), 4)
                for node, value in found.items():
                    self.assertAlmostEqual(value, said(stats[names[node]]), delta=1e-6, msg=(colour, names[node]))
            view.diff()
            for node, value in self.boxes(view, colour="change").items():
                self.assertAlmostEqual(value, changes.get(names[node], {}).get("rel_l2") or 0, delta=1e-6, msg=names[node])
            view.api("files/0/treemap", colour="nothing", status=400)

    def test_oddities_are_named_with_their_numbers(self):
        nan, inf = float("nan"), float("inf")
        tensors = [("fine", [1, 2]), ("nan", [nan, 1, nan]), ("inf", [inf, -inf, 0]), ("zero", [0, 0]), ("same", [3, 3]), ("one", [5]), ("empty", [])]
        with View(self.file("odd.safetensors", safetensors([(name, "F32", [len(v)], floats(*v)) for name, v in tensors]))) as view:
            view.done(view.api("files/0/measures", status=202)["job"])
            answer = view.api("files/0/measures")
            self.assertEqual({row["path"]: (row["kind"], row["value"]) for row in answer["odd"]},
                             {"nan": ("nan", 2), "inf": ("inf", 2), "zero": ("zero", None), "same": ("constant", 3.0), "empty": ("empty", None)})  # fmt: skip
            self.assertEqual(answer["total"], 5)
        many = safetensors([(f"t{i}", "F32", [1000], bytes(4000)) for i in range(300)])
        with View(self.file("many.safetensors", many)) as view:
            view.done(view.api("files/0/measures", status=202)["job"])
            answer = view.api("files/0/measures")
            self.assertEqual((len(answer["odd"]), answer["total"]), (200, 300))

    def test_pickles_of_a_tar_and_of_shards_are_shown_too(self):
        path = FIXTURES / "torch/files/reader_tar_weight_bias.tar"
        with View(path) as view, tarfile.open(path) as archive:
            entries = view.api("files/0/scan")["entries"]
            members = {member.name: archive.extractfile(member).read() for member in archive.getmembers() if member.isfile() and member.size}
            self.assertEqual({row["name"]: row["bytes"] for row in entries}, {name: len(content) for name, content in members.items()})
            for entry, row in enumerate(entries):
                rows = view.api("files/0/pickle", entry=entry)["rows"]
                expected = [(at, op.name) for op, _, at in pickletools.genops(members[row["name"]])]
                self.assertEqual([(each["offset"], each["opcode"]) for each in rows][: len(expected)], expected)
        folder = self.folder / "sharded"
        folder.mkdir()
        for name, source in (("one.bin", "zip_all_empty_storages.pt"), ("two.bin", "legacy_raw_storage.pth")):
            shutil.copy(FIXTURES / "torch/files" / source, folder / name)
        names = {name: [row["name"] for row in self.run_json("ls", folder / name)["tensors"]] for name in ("one.bin", "two.bin")}
        index = {"weight_map": {tensor: name for name, tensors in names.items() for tensor in tensors}}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
        for path in (folder, folder / "pytorch_model.bin.index.json"):
            with View(path) as view:
                entries = [row["name"] for row in view.api("files/0/scan")["entries"]]
                self.assertEqual([name.split(":")[0] for name in entries], ["one.bin", "two.bin"])
                self.assertTrue(entries[0].endswith("data.pkl"), entries)
                for entry in (0, 1):
                    self.assertTrue(view.api("files/0/pickle", entry=entry)["rows"][0]["opcode"] == "PROTO")

    def test_what_lies_in_very_many_files_has_an_end(self):
        # Files and their headers are not drawn together: of more than 4000 parts the first are shown.
        count = 2100
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 2 * count:
            self.skipTest("so many files may not be open at once")
        folder = self.folder / "many"
        folder.mkdir()
        for i in range(count):
            (folder / f"{i}.safetensors").write_bytes(safetensors([(f"w{i}", "U8", [100], bytes(100))]))
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": {f"w{i}": f"{i}.safetensors" for i in range(count)}}))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count), hard))
        try:
            with View(index) as view:
                layout = view.api("files/0/layout")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.assertEqual((len(layout["parts"]), layout["folded"]), (4000, 2 * count - 4000))
        self.assertEqual(len(layout["files"]), count)

    def test_tied_tensors_know_each_other(self):
        with View(self.file("t.safetensors", tied())) as view:
            rows = {row["path"]: row for row in view.api("files/0/find")["rows"]}
            self.assertEqual(rows["a.weight"]["tied"], ["b.weight"])
            self.assertEqual(rows["b.weight"]["tied"], ["a.weight"])
            self.assertEqual(rows["z"]["tied"], [])


if __name__ == "__main__":
    unittest.main()
