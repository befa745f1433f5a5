# SPDX-License-Identifier: Apache-2.0
"""`ballast view` of large files: samples that say so, everything when asked, and what it costs, in loops of this machine."""
import json
import os
import random
import re
import struct
import time
import unittest

from cli_testing import SIZES, CliTest, floats, safetensors
from view_testing import View


def sparse(path, tensors, values=()):
    """A file of [(name, dtype, shape)] that are zeros and take no room, and of [(name, number of the element, its bytes)]."""
    header, places, offset = {}, {}, 0
    for name, dtype, shape in tensors:
        size = SIZES[dtype]
        for dim in shape:
            size *= dim
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        places[name] = (offset, SIZES[dtype])
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
        for name, element, content in values:
            begin, size = places[name]
            file.seek(8 + len(text) + begin + element * size)
            file.write(content)
    return path


def loop():
    """Seconds of a fixed loop, here and now: what a time is divided by before it is printed."""
    start = time.perf_counter()
    state = 1
    for _ in range(1_000_000):
        state = state * 48271 % 2147483647
    return time.perf_counter() - start


def memory(view):
    """Resident megabytes of the command that belong to no file."""
    with open(f"/proc/{view.process.pid}/status") as file:
        return int(re.search(r"RssAnon:\s+(\d+)", file.read()).group(1)) / 1024


class Large(CliTest):
    def two_files(self):
        """Changes that a sample sees, and one that it does not: the last value of `last` lies behind the last page."""
        count = 3_000_500
        moved = random.Random(5).randbytes(4 * count)
        ones, twos, zeros = floats(1) * count, floats(2) * count, bytes(4 * count)
        a = [("every", "F32", [count], ones), ("last", "F32", [count], zeros), ("same", "F32", [500, 6001], ones), ("small", "F32", [3], floats(1, 2, 3)), ("old.name", "F32", [count], moved),
             ("turned", "F32", [500, 6001], zeros), ("gone", "F32", [1000, 3000], ones[: 4 * 3_000_000])]  # fmt: skip
        b = [("every", "F32", [count], twos), ("last", "F32", [count], zeros[:-4] + floats(7)), ("same", "F32", [500, 6001], ones), ("small", "F32", [3], floats(1, 2, 4)), ("new.name", "F32", [count], moved),
             ("turned", "F32", [6001, 500], zeros), ("come", "F32", [3000, 1000], ones[: 4 * 3_000_000])]  # fmt: skip
        return self.file("a.safetensors", safetensors(a)), self.file("b.safetensors", safetensors(b))

    def test_two_large_files_are_compared_by_a_sample_and_wholly_when_asked(self):
        a, b = self.two_files()
        with View(a, b) as view:
            some = view.diff(sort="file")
            rows = {row["name"]: row for row in some["rows"]}
            self.assertTrue(some["sampled"])
            self.assertEqual(some["bytes"], sum(t["bytes"] for path in (a, b) for t in self.run_json("ls", path)["tensors"]))
            self.assertEqual({name: (row["kind"], row["sampled"]) for name, row in rows.items()},
                             {"every": ("changed", True), "last": ("equal", True), "same": ("equal", True), "small": ("changed", False), "old.name": ("renamed", True), "turned": ("shape", True),
                              "gone": ("only_a", True), "come": ("only_b", True)})  # fmt: skip
            self.assertEqual([round(rows["every"][key], 12) for key in ("rel_l2", "max_abs", "cosine")], [1, 1, 1])
            self.assertEqual(rows["every"]["differing"], rows["every"]["elements"])
            self.assertLess(rows["every"]["elements"], 3_000_500)
            self.assertEqual((rows["turned"]["shape_a"], rows["turned"]["shape_b"]), ([500, 6001], [6001, 500]))
            self.assertEqual([rows["small"][key] for key in ("max_abs", "differing", "elements")], [1, 1, 3])
            view.api("files/0/treemap", colour="change", status=409)  # what a sample says is no colour
            self.assertEqual(view.tile(f"diff/t/{rows['every']['i']}/tile", stat="delta")[1][0][0], -1)
            whole = view.diff(sort="file", exact=1)
            self.assertFalse(whole["sampled"])
            self.assertEqual(view.diff(sort="file"), whole)  # from now on
            expected = {t["name"]: t for t in self.run_json("diff", a, b, code=1)["tensors"]}
            kinds = {"values": "changed", "only-a": "only_a", "only-b": "only_b"}
            for row in whole["rows"]:
                self.assertFalse(row["sampled"])
                self.assertEqual(row["kind"], kinds.get(expected[row["name"]]["change"], expected[row["name"]]["change"]))
            last = next(row for row in whole["rows"] if row["name"] == "last")
            self.assertEqual((last["kind"], last["differing"], last["max_abs"], last["elements"]), ("changed", 1, 7, 3_000_500))
            view.api("diff", exact="x", status=400)

    def test_small_files_are_compared_wholly_at_once(self):
        paths = [self.file(f"{i}.safetensors", safetensors([("w", "F32", [2], floats(1, i))])) for i in (1, 2)]
        with View(*paths) as view:
            self.assertFalse(view.diff()["sampled"])

    def test_one_changed_value_is_in_the_picture_when_all_of_it_was_read(self):
        side, place = 6000, 4321 * 6000 + 1234
        paths = [sparse(self.path(f"{i}.safetensors"), [("w", "F32", [side, side])], [("w", place, floats(i))]) for i in (0, 3)]
        with View(*paths) as view:
            view.diff()
            level = view.api("diff/t/0/plane")["levels"] - 1
            head, rows = view.tile("diff/t/0/tile", level=level, stat="absmax")
            self.assertEqual((head["exact"], head["max"]), (0, 0))
            self.assertEqual(view.done(view.api("diff/t/0/exact", "POST", stat="absmax")["job"])["state"], "done")
            for stat, shown in (("absmax", 3), ("delta", -3)):
                head, rows = view.tile("diff/t/0/tile", level=level, stat=stat)
                self.assertEqual(head["exact"], 1)
                self.assertEqual([(y, x, v) for y, row in enumerate(rows) for x, v in enumerate(row) if v], [(4321 >> level, 1234 >> level, shown)])
            self.assertEqual(view.tile("diff/t/0/tile", level=level, stat="sign")[0]["exact"], 0)  # nobody has read that

    def test_one_outlier_in_2_500_million_values_is_seen_after_the_exact_pass(self):
        side, row, col = 50_000, 43_210, 12_345
        path = sparse(self.path("o.safetensors"), [("w", "BF16", [side, side])], [("w", row * side + col, b"\xf0\xc0")])  # -7.5
        with View(path) as view:
            first = view.api("files/0/t/0/summary")
            self.assertEqual((first["exact"], first["max"], first["min"], first["elements"]), (False, 0, 0, side * side))
            level = view.api("files/0/t/0/plane")["levels"] - 1
            self.assertEqual(view.tile("files/0/t/0/tile", level=level)[0]["exact"], 0)
            start = time.perf_counter()
            self.assertEqual(view.done(view.api("files/0/t/0/exact", "POST")["job"])["state"], "done")
            print(f"exact pass over 2,500,000,000 BF16: {(time.perf_counter() - start) / loop():.1f} loops")
            head, rows = view.tile("files/0/t/0/tile", level=level, stat="absmax")
            self.assertEqual((head["exact"], head["max"]), (1, 7.5))
            self.assertEqual([(y, x) for y, cells in enumerate(rows) for x, v in enumerate(cells) if v], [(row >> level, col >> level)])
            summary = view.api("files/0/t/0/summary")
            self.assertEqual((summary["exact"], summary["min"], summary["zeros"]), (True, -7.5, side * side - 1))

    def timed(self, what, limit, work):
        """In loops, the best of three. The limits are far away: a busy machine is slow at everything."""
        best = min(self.seconds(work) / loop() for _ in range(3))
        print(f"{what}: {best:.3f} loops")
        self.assertLess(best, limit, what)

    @staticmethod
    def seconds(work):
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    def test_100_000_tensors_cost_little_to_look_at(self):
        tensors = [(f"model.layers.{i // 20}.block.part{i % 20}.weight", "F32", [4, 4]) for i in range(100_000)]
        path = sparse(self.path("many.safetensors"), tensors)
        with View(path) as view:
            self.assertEqual(view.api("files")["files"][0]["tensors"], 100_000)
            self.timed("tree", 20, lambda: view.api("files/0/tree", path="model.layers", fold=0, limit=200))
            self.timed("find", 20, lambda: view.api("files/0/find", q="part7", limit=200))
            self.timed("treemap", 40, lambda: view.api("files/0/treemap", w=1000, h=800))
            self.assertEqual(view.api("files/0/find", q="layers.17.")["total"], 20)
            self.assertLess(memory(view), 200)

    def test_ten_gigabytes_cost_what_a_sample_costs(self):
        path = sparse(self.path("ten.safetensors"), [(f"w{i}", "F32", [50_000, 50_000]) for i in range(3)])
        tensors, pictures = iter(range(3)), iter(range(3))  # what was answered once is kept: another one each time

        def open_and_end():
            with View(path) as view:
                view.api("files")

        self.timed("open 30 GB", 60, open_and_end)
        with View(path) as view:
            top = view.api("files/0/t/0/plane")["levels"] - 1
            self.timed("summary of 10 GB", 60, lambda: view.api(f"files/0/t/{next(tensors)}/summary"))
            self.timed("picture of 10 GB", 60, lambda: view.api(f"files/0/t/{next(pictures)}/tile", level=top))
            self.timed("tile of 10 GB", 60, lambda: view.api("files/0/t/0/tile", level=0, x=100, y=random.randrange(190)))
            self.assertLess(memory(view), 200)

    def test_memory_has_an_end_however_much_is_read_wholly(self):
        count = 12  # a pass over many short rows keeps two numbers of each: 32 MB
        with View(sparse(self.path("p.safetensors"), [(f"w{i}", "U8", [4_000_000, 5]) for i in range(count)])) as view:
            for n in range(count):
                self.assertEqual(view.done(view.api(f"files/0/t/{n}/exact", "POST")["job"])["state"], "done")
                self.assertTrue(view.api(f"files/0/t/{n}/summary")["exact"])
            self.assertFalse(view.api("files/0/t/0/summary")["exact"])  # forgotten
            print(f"{count} exact passes: {memory(view):.0f} MB")
            self.assertLess(memory(view), 200)

    def test_memory_has_an_end_however_often_somebody_clicks(self):
        clicks = int(os.environ.get("BALLAST_VIEW_CLICKS", "1500"))
        tensors = [(f"layers.{i // 7}.w{i % 7}", "F32", [600, 700]) for i in range(700)]
        with View(sparse(self.path("c.safetensors"), tensors)) as view:
            view.api("files/0/treemap", w=900, h=700)
            before, choose = memory(view), random.Random(1)
            for _ in range(clicks // 5):
                n = choose.randrange(700)
                view.api(f"files/0/t/{n}/summary")
                view.api(f"files/0/t/{n}/tile", level=choose.randrange(3), stat=choose.choice(["absmax", "mean", "value"]))
                view.api(f"files/0/t/{n}/lines", axis=choose.randrange(2), of="norm")
                view.api(f"files/0/t/{n}/values", x=choose.randrange(600), y=choose.randrange(500))
                view.api("files/0/find", q=f"layers.{choose.randrange(100)}.", limit=50)
            print(f"{clicks} requests: {before:.0f} -> {memory(view):.0f} MB")
            self.assertLess(memory(view), 200)


if __name__ == "__main__":
    unittest.main()
