# SPDX-License-Identifier: Apache-2.0
"""Tables: their order, rows that are shared, and columns that stay in place however long the names are."""
import itertools
import json
import math
import random
import re
import struct
import unittest

from cli_testing import CliTest, environment, floats, safetensors

PLAIN = environment(NO_COLOR="1")


class Sorting(CliTest):
    def test_ls_sorts_by_every_column(self):
        draw = random.Random(3)
        dtypes = {"F32": 4, "BF16": 2, "I64": 8, "U8": 1}
        shapes = [[], [3], [2, 2], [12], [2, 3, 2], [1], [0, 4], [10, 2]]
        rows = [(f"t{i}", draw.choice(list(dtypes)), shape) for i, shape in enumerate(shapes * 2)]
        draw.shuffle(rows)
        path = self.file("s.safetensors", safetensors([(name, dtype, shape, bytes(math.prod(shape) * dtypes[dtype])) for name, dtype, shape in rows]))
        number = lambda row: math.prod(row[2])
        keys = {
            "file": None, "name": lambda row: int(row[0][1:]), "dtype": lambda row: row[1], "shape": lambda row: (len(row[2]), row[2]),
            "parameters": lambda row: -number(row), "size": lambda row: -number(row) * dtypes[row[1]], "bytes": lambda row: -number(row) * dtypes[row[1]],
        }  # fmt: skip
        for key, order in keys.items():
            wanted = rows if order is None else sorted(rows, key=order)
            self.assertEqual([t["name"] for t in self.run_json("ls", path, "--sort", key)["tensors"]], [row[0] for row in wanted], key)

    def test_ls_sorts_by_offset_in_the_file(self):
        data = floats(1, 2, 3)
        text = json.dumps({f"t{i}": {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i in (2, 0, 1)}).encode()
        text += b" " * (-len(text) % 8)
        path = self.file("o.safetensors", struct.pack("<Q", len(text)) + text + data)
        self.assertEqual([t["name"] for t in self.run_json("ls", path, "--sort", "offset")["tensors"]], ["t0", "t1", "t2"])

    def test_ls_sorts_by_what_is_packed(self):
        draw = random.Random(4)
        path = self.file("s.safetensors", safetensors([(f"t{n}", "F32", [n], floats(*(draw.gauss(0, 1) for _ in range(n)))) for n in (1000, 90000, 1, 30000)]))
        self.run_tool("convert", path, self.path("p.safetensors"), "--pack", "small")
        found = self.run_json("ls", self.path("p.safetensors"), "--sort", "packed")["tensors"]
        self.assertEqual([t.get("packed", 0) for t in found], sorted((t.get("packed", 0) for t in found), reverse=True))
        self.assertEqual([t["name"] for t in found][:2], ["t90000", "t30000"])

    def pair(self):
        values = {"z": ([0, 0], [0, 1]), "far": ([100, 100], [100, 103]), "near": ([1, 1], [1, 1.5]), "equal": ([1], [1]), "nan": ([1, 2], [math.nan, 2])}
        a = self.file("a.safetensors", safetensors([(name, "F32", [len(x)], floats(*x)) for name, (x, _) in values.items()] + [("only", "U8", [1], b"x")]))
        b = self.file("b.safetensors", safetensors([(name, "F32", [len(y)], floats(*y)) for name, (_, y) in values.items()]))
        return a, b

    def test_diff_sorts_by_distance_and_name(self):
        orders = {"file": ["z", "far", "near", "nan", "only"], "name": ["far", "nan", "near", "only", "z"], "max": ["nan", "far", "z", "near", "only"], "rel-l2": ["z", "nan", "near", "far", "only"]}
        for key, wanted in orders.items():
            out = self.run_json("diff", *self.pair(), "--sort", key, code=1)
            self.assertEqual([t["name"] for t in out["tensors"] if t["change"] != "equal"], wanted, key)
            text, _ = self.run_tool("diff", *self.pair(), "--sort", key, code=1)
            self.assertEqual([line.split()[0] for line in text.splitlines()[1:-1]], wanted, key)

    def test_relative_l2_is_the_length_of_the_difference_over_that_of_a(self):
        found = {t["name"]: t.get("rel_l2") for t in self.run_json("diff", *self.pair(), code=1)["tensors"]}
        self.assertEqual((found["z"], found["nan"]), (None, 0))  # A is all zero; the finite pairs are equal
        self.assertAlmostEqual(found["far"], 3 / math.hypot(100, 100))
        self.assertAlmostEqual(found["near"], 0.5 / math.hypot(1, 1))

    def test_relative_l2_of_every_dtype_and_size(self):
        draw = random.Random(5)
        forms = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "U8": "B"}
        tensors = [(code, form, count) for (code, form), count in itertools.product(forms.items(), (1, 3, 1023, 1025, 5000))]
        drawn = [([draw.randint(0, 200) for _ in range(n)], [draw.randint(0, 200) for _ in range(n)]) for _, _, n in tensors]
        files = [self.file(f"{side}.safetensors", safetensors([(f"{code}.{n}", code, [n], struct.pack(f"<{n}{form}", *pair[side])) for (code, form, n), pair in zip(tensors, drawn)])) for side in (0, 1)]
        found = {t["name"]: t.get("rel_l2") for t in self.run_json("diff", *files, code=1)["tensors"]}
        for (code, _, n), (a, b) in zip(tensors, drawn):
            self.assertAlmostEqual(found[f"{code}.{n}"], math.dist(a, b) / math.hypot(*a), places=12)


class Layers(CliTest):
    """diff --per-layer: sums over the tensors of a layer."""

    def pair(self):
        draw = random.Random(3)
        names = [f"layers.{i}.{part}.{kind}" for i in range(3) for part in ("attn", "mlp") for kind in ("weight", "bias")] + ["head.weight", "scale"]
        self.a = {name: [draw.uniform(-1, 1) for _ in range(4)] for name in names}
        self.b = {name: values if name.startswith("layers.1") or name.endswith("bias") else [v + draw.choice((0, 0.25, -0.5)) for v in values] for name, values in self.a.items()}
        return [self.file(f"{side}.safetensors", safetensors([(name, "F64", [4], struct.pack("<4d", *values)) for name, values in tensors.items()])) for side, tensors in (("a", self.a), ("b", self.b))]

    def sums(self, names):
        a, b = ([v for name in names for v in side[name]] for side in (self.a, self.b))
        return sum(x != y for x, y in zip(a, b)), max(abs(x - y) for x, y in zip(a, b)), math.dist(a, b) / math.hypot(*a)

    def test_a_layer_is_one_vector_of_all_its_tensors(self):
        files = self.pair()
        for depth, layer in ((None, lambda name: name.rpartition(".")[0]), (1, lambda name: name.rpartition(".")[0].split(".")[0]), (2, lambda name: ".".join(name.rpartition(".")[0].split(".")[:2]))):
            found = {row["name"]: row for row in self.run_json("diff", *files, "--all", *(["--depth", str(depth)] if depth else ["--per-layer"]), code=1)["layers"]}
            self.assertEqual(list(found), list(dict.fromkeys(map(layer, self.a))))
            for name, row in found.items():
                members = [tensor for tensor in self.a if layer(tensor) == name]
                differing, largest, length = self.sums(members)
                self.assertEqual((row["tensors"], row["values"], row["differing"]), (len(members), 4 * len(members), differing))
                self.assertEqual(row["changed"], sum(self.a[tensor] != self.b[tensor] for tensor in members))
                self.assertAlmostEqual(row["max_abs"], largest, places=12)
                self.assertAlmostEqual(row["rel_l2"], length, places=12)

    def test_rows_are_sorted_folded_and_without_those_that_are_equal(self):
        files = self.pair()
        names = [line.split()[0] for line in self.run_tool("diff", *files, "--per-layer", code=1)[0].splitlines()[1:-1]]
        self.assertEqual(names, ["layers.0.attn", "layers.0.mlp", "layers.2.attn", "layers.2.mlp", "head", "(no"])
        rows = self.run_json("diff", *files, "--per-layer", "--sort", "rel-l2", code=1)["layers"]
        self.assertEqual([row["rel_l2"] for row in rows], sorted((row["rel_l2"] for row in rows), reverse=True))
        folded, _ = self.run_tool("diff", *files, "--per-layer", "--fold", code=1)
        self.assertEqual([line.split()[:5] for line in folded.splitlines()[1:3]], [["layers.#.attn", "\u00d72", "2", "of", "4"], ["layers.#.mlp", "\u00d72", "2", "of", "4"]])
        both = [tensor for tensor in self.a if tensor.startswith(("layers.0.attn", "layers.2.attn"))]
        self.assertAlmostEqual(self.run_json("diff", *files, "--per-layer", "--fold", code=1)["layers"][0]["rel_l2"], self.sums(both)[2], places=12)
        self.assertIn("| layers.0.attn | 1 of 2 |", self.run_tool("diff", *files, "--per-layer", "--markdown", code=1)[0])
        self.assertIn("--no-fold", self.run_on_terminal("diff", *files, "--per-layer", rows=6, env=PLAIN)[0])
        self.assertEqual(self.run_tool("diff", files[0], files[0], "--per-layer")[0], "14 equal\n")

    def test_tensors_of_one_side_and_other_shapes_count_as_changed(self):
        a = self.file("x.safetensors", safetensors([("l.w", "F32", [2], floats(3, 4)), ("l.b", "F32", [1], floats(1)), ("l.c", "F32", [1], floats(1))]))
        b = self.file("y.safetensors", safetensors([("l.w", "F32", [2], floats(3, 4)), ("l.b", "F32", [2], floats(1, 1)), ("l.d", "F32", [1], floats(9))]))
        row = self.run_json("diff", a, b, "--per-layer", code=1)["layers"][0]
        self.assertEqual((row["tensors"], row["changed"], row["values"], row["differing"], row["rel_l2"]), (4, 3, 2, 0, 0))


class FirstNan(CliTest):
    def test_it_is_named_by_its_index_on_each_side(self):
        nan = math.nan
        a = self.file("a.safetensors", safetensors([("w", "F32", [2, 3], floats(1, 2, 3, 4, nan, 6)), ("v", "F32", [2], floats(1, 2)), ("same", "F32", [2], floats(nan, 1))]))
        b = self.file("b.safetensors", safetensors([("w", "F32", [2, 3], floats(1, 2, nan, 4, nan, 6)), ("v", "F32", [2], floats(1, 3)), ("same", "F32", [2], floats(nan, 1))]))
        found = {t["name"]: (t.get("nan_a"), t.get("nan_b")) for t in self.run_json("diff", a, b, code=1)["tensors"]}
        self.assertEqual(found, {"w": (4, 2), "v": (None, None), "same": (None, None)})
        out, _ = self.run_tool("diff", a, b, code=1)
        self.assertIn("FIRST NAN", out.splitlines()[0])
        self.assertIn("A [1, 1], B [0, 2]", out)
        self.assertNotIn("FIRST NAN", self.run_tool("diff", a, b, "--include", "^v$", code=1)[0])


class Folding(CliTest):
    def test_diff_folds_what_differs_only_in_a_number_and_in_the_same_way(self):
        a = [(f"layers.{i}.w", "F32", [2], floats(1, 2)) for i in range(10)] + [("x.w", "F32", [2], floats(1, 2)), ("layers.0.b", "F32", [1], floats(1))]
        b = [(f"layers.{i}.w", "F32", [2], floats(1, 2 + i / 4)) for i in range(10)] + [("x.w", "F32", [2], floats(1, 2.5)), ("layers.0.b", "F16", [1], struct.pack("<e", 1))]
        files = [self.file(name, safetensors(tensors)) for name, tensors in (("a.safetensors", a), ("b.safetensors", b))]
        out, _ = self.run_tool("diff", *files, "--fold", code=1)
        rows = [line.split() for line in out.splitlines()[1:-1]]
        self.assertEqual([row[0] for row in rows], ["layers.#.w", "x.w", "layers.0.b"])
        self.assertEqual(rows[0][:9], ["layers.#.w", "\u00d79", "values", "F32", "[2]", "9", "of", "18", "2.25"])  # layers.0.w is equal
        self.assertIn("10 values", out)
        self.assertEqual(len(self.run_tool("diff", *files, code=1)[0].splitlines()), 13)
        self.assertIn("layers.#.w", self.run_tool("diff", *files, "--fold", "--markdown", code=1)[0])
        self.assertIn("--no-fold", self.run_on_terminal("diff", *files, rows=10, env=PLAIN)[0])
        self.assertEqual(len(self.run_json("diff", *files, "--fold", code=1)["tensors"]), 12)


class Quiet(CliTest):
    def test_a_quiet_ls_is_the_table_alone(self):
        whole, quiet = self.run_tool("ls", self.small())[0].splitlines(), self.run_tool("ls", self.small(), "-q")[0].splitlines()
        self.assertEqual(quiet, whole[:-1])
        self.assertEqual(self.run_tool("ls", self.file("e.safetensors", safetensors([])), "-q"), ("", ""))


class Columns(CliTest):
    """Where a column begins under its title, in every row, at every width."""

    def test_long_names_leave_the_columns_where_they_are(self):
        names = ["x", "layer.weight", "model.decoder.layers.7.self_attn.q_proj.weight", "a" * 45, "m." + "b" * 60, "n." + "c" * 140]
        path = self.file("l.safetensors", safetensors([(name, "F32", [1, i + 2], floats(*range(i + 2))) for i, name in enumerate(names)]))
        for width, command in itertools.product((40, 80, 130), (["ls"], ["ls", "-l"])):
            out, code = self.run_on_terminal(*command, path, "--no-fold", columns=width, rows=60, env=PLAIN)
            self.assertEqual(code, 0)
            lines = out.splitlines()
            at = lines[0].index("DTYPE")
            rows = [line for line in lines if line[at : at + 3] == "F32" and line[:at].strip() in ("", *names)]
            self.assertEqual(len(rows), len(names), out)
            self.assertTrue(all(len(line) <= width for line in rows), out)
            for row, shape in zip(rows, range(2, 9)):
                self.assertEqual(row.index(f"[1, {shape}]"), lines[0].index("SHAPE"))
                self.assertEqual(len(row), len(lines[0]))  # the last column is right-aligned
            for name in names:
                self.assertTrue(any(line.rstrip() == name or line.startswith(name + " ") for line in lines), name)

    def test_a_diff_leaves_out_the_columns_that_have_no_room_and_says_so(self):
        names = ["x", "model.decoder.layers.7.self_attn.q_proj.weight"]
        a, b = (self.file(f"{side}.safetensors", safetensors([(name, "F32", [2], floats(1, 2 + side)) for name in names])) for side in (0, 1))
        titles = ["DIFFERING", "MAX ABS", "MAX REL", "REL L2", "ULP", "COSINE"]
        for width in (40, 80, 130):
            out, code = self.run_on_terminal("diff", a, b, columns=width, env=PLAIN)
            lines = out.splitlines()
            self.assertEqual(code, 1)
            shown = [title for title in titles if title in lines[0]]
            left = re.search("no room for (.*); a wider", out)
            self.assertEqual(sorted(shown + (left.group(1).split(", ") if left else [])), sorted(titles))
            self.assertEqual(width == 130, left is None, out)
            rows = [line for line in lines if " values " in line and "F32" in line]
            self.assertEqual(len(rows), 2)
            for row in rows:
                self.assertEqual((row.index("values"), row.index("F32")), (lines[0].index("CHANGE"), lines[0].index("WHAT")))
                self.assertEqual(len(row), len(lines[0]))
                self.assertLessEqual(len(row), width)

    def test_verify_stats_and_layers_keep_to_the_width(self):
        nan, names = math.nan, ["x.w", "model.decoder.layers.7.self_attn.q_proj.weight", "m." + "b" * 60 + ".w", "n." + "c" * 140 + ".w"]
        a, b = (self.file(f"{side}.safetensors", safetensors([(name, "F32", [8, 8], floats(*([side, nan] * 32))) for name in names])) for side in (0, 1))
        commands = {("verify", b): "WHAT", ("stats", b): "DTYPE", ("diff", a, b): "CHANGE", ("diff", a, b, "--per-layer"): "CHANGED"}
        for width, (command, title) in itertools.product((40, 80, 130), commands.items()):
            out, _ = self.run_on_terminal(*command, columns=width, rows=60, env=PLAIN)
            lines = [line for line in out.splitlines() if line.strip() not in names + [name.rpartition(".")[0] for name in names] and not line.startswith("note:")]
            head = next(i for i, line in enumerate(lines) if title in line)
            rows = lines[head + 1 : head + 5]
            self.assertEqual(len(rows), 4, out)
            self.assertTrue(all(len(line) <= width for line in [lines[head], *rows]), out)
            begin = lines[head].index(title)
            for row in rows if title != "CHANGED" else ():  # which is right-aligned
                self.assertEqual((row[begin - 1], row[begin] != " "), (" ", True), out)

    def test_into_a_pipe_every_row_is_a_line(self):
        names = ["x", "n." + "c" * 140]
        path = self.file("l.safetensors", safetensors([(name, "F32", [1], floats(1)) for name in names]))
        out, _ = self.run_tool("ls", path)
        self.assertEqual([re.split(" {2,}", line)[0] for line in out.splitlines()[1:3]], names)
        self.assertTrue(all("F32" in line for line in out.splitlines()[1:3]))


if __name__ == "__main__":
    unittest.main()
