# SPDX-License-Identifier: Apache-2.0
"""What tensors mean besides their numbers (ties, scales, layout) stays with them through every command, or the command says no; and nothing is read that is also written."""
import io
import json
import pathlib
import pickle
import re
import struct
import types
import unittest
import zipfile
from collections import OrderedDict
from unittest import mock

from cli_testing import SOURCE, CliTest, floats, quantized, read_safetensors, safetensors, tied

NUMBERS = floats(0.5, -1.0, 6.0, 254.0)  # q * scale, by hand


class Meanings(CliTest):
    def names(self, file):
        return {t["name"]: t.get("tied_to") for t in self.run_json("ls", file)["tensors"]}

    def test_renaming_or_leaving_out_one_name_of_a_tied_pair_keeps_the_other(self):
        source = self.file("tied.safetensors", tied())
        for change, expected in (
            (["--rename", "^a\\.=c."], {"c.weight": None, "b.weight": "c.weight", "z": None}),
            (["--rename", "^b\\.=c."], {"a.weight": None, "c.weight": "a.weight", "z": None}),
            (["--exclude", "^a"], {"b.weight": None, "z": None}),
            (["--exclude", "^b"], {"a.weight": None, "z": None}),
            (["--include", "^b"], {"b.weight": None}),
        ):
            for suffix in ("safetensors", "record", "pt"):
                target = self.path(f"out.{suffix}")
                self.run_tool("convert", source, target, "-f", *change)
                self.assertEqual(self.names(target), expected, (change, suffix))

    def test_a_tied_tensor_is_in_a_safetensors_file_once_with_the_name_that_is_left_out_in_the_metadata(self):
        self.run_tool("convert", self.file("tied.safetensors", tied()), self.path("t.pt"))
        for name in ("t.safetensors", "t.record"):
            self.run_tool("convert", self.path("t.pt"), self.path(name))
            tensors, metadata = read_safetensors(self.path(name))
            self.assertEqual(set(tensors), {"a.weight", "z"})
            self.assertEqual(json.loads(metadata["ballast.ties"]), {"b.weight": "a.weight"})
            self.assertEqual(metadata["b.weight"], "a.weight")  # as Safetensors' save_model() says it

    def test_ls_and_show_name_the_ties_and_count_their_bytes_once(self):
        source = self.file("tied.safetensors", tied())
        out, _ = self.run_tool("ls", source)
        self.assertIn("b.weight  = a.weight", out)
        self.assertIn("3 tensors, 3 parameters, 12 B", out)
        self.assertEqual(self.run_json("show", source)["ties"], {"b.weight": "a.weight"})

    def test_formats_without_ties_say_that_they_write_a_tensor_again(self):
        _, err = self.run_tool("convert", self.file("tied.safetensors", tied()), self.path("t.npz"))
        self.assertIn("npz has no ties", err)

    def test_a_rule_that_changes_one_name_of_a_tied_pair_says_that_they_are_not_tied_any_more(self):
        source = self.file("tied.safetensors", tied())
        changes = {"cast": [{"match": "^a\\.weight$", "cast": "f16"}], "both": [{"match": "weight$", "cast": "f16"}], "rename": [{"match": "^a", "to": "c"}]}
        for name, rules in changes.items():
            for out in ("o.safetensors", "o.record", "o.pt"):
                with self.subTest(name=name, out=out):
                    _, err = self.run_tool("convert", "-f", source, self.path(out), "--rules", self.file("r.json", json.dumps({"rules": rules}).encode()))
                    self.assertEqual("are not tied any more" in err, name == "cast", err)

    def test_views_that_overlap_are_said_to_be_written_apart_where_they_are(self):
        source = str(pathlib.Path(__file__).parents[1] / "fixtures/torch/files/share_reshaped_alias.pt")  # w, flat and row of one storage
        for out, apart in (("o.safetensors", True), ("o.record", True), ("o.npz", True), ("o.bpk", True), ("o.pt", False)):
            with self.subTest(out=out):
                _, err = self.run_tool("convert", "-f", source, self.path(out))
                self.assertEqual("share bytes in the input" in err, apart, err)

    def test_metadata_whose_value_is_a_tensors_name_is_no_tie(self):
        tensors = [("pt", "F32", [1], floats(1)), ("1", "F32", [1], floats(2)), ("w", "F32", [1], floats(3))]
        source = self.file("s.safetensors", safetensors(tensors, {"format": "pt", "ballast.record": "1", "best": "w", "of.it": "w"}))
        self.assertEqual(set(self.names(source)), {"pt", "1", "w"})
        self.assertEqual(len(self.run_json("hash", source)["tensors"]), 3)
        self.run_tool("convert", source, self.path("s.pt"), "--no-check")
        self.assertEqual(set(self.names(self.path("s.pt"))), {"pt", "1", "w"})

    def test_quantized_tensors_are_their_numbers_wherever_scales_have_no_place(self):
        source = self.file("q.safetensors", quantized())
        other = self.small("other.safetensors")
        for command in (["convert", source], ["merge", source, other]):
            for suffix in ("pt", "npz", "bpk"):
                target = self.path(f"out.{suffix}")
                self.assertIn("quantized tensors become numbers", self.run_tool(*command, target, "-f")[1])
                self.run_tool("convert", target, self.path("back.safetensors"), "-f")
                found, _ = read_safetensors(self.path("back.safetensors"))
                self.assertEqual(found["q"], ("F32", [2, 2], NUMBERS), (command, suffix))
                self.assertNotIn("q_scale", found)

    def test_merge_keeps_what_each_file_says_is_quantized(self):
        one = self.file("one.safetensors", quantized())
        two = self.file("two.safetensors", quantized((3.0, 4.0)).replace(b'"q', b'"p').replace(b'\\"q', b'\\"p'))
        self.run_tool("merge", one, two, self.path("both.safetensors"))
        _, metadata = read_safetensors(self.path("both.safetensors"))
        self.assertEqual(set(json.loads(metadata["ballast.quantized"])), {"q", "p"})
        self.run_tool("convert", self.path("both.safetensors"), self.path("numbers.safetensors"))
        found, _ = read_safetensors(self.path("numbers.safetensors"))
        self.assertEqual(found["q"][2], NUMBERS)
        self.assertEqual(found["p"][2], floats(3, -6, 12, 508))

    def test_merge_refuses_two_layouts_and_notes_metadata_that_differs(self):
        native = self.file("native.safetensors", safetensors([("a", "F32", [1], floats(1))], {"ballast.layout": "native", "author": "x"}))
        other = self.file("other.safetensors", safetensors([("b", "F32", [1], floats(1))], {"author": "y"}))
        _, err = self.run_tool("merge", native, other, self.path("m.safetensors"), code=2)
        self.assertIn("layout", err)
        third = self.file("third.safetensors", safetensors([("c", "F32", [1], floats(1))], {"ballast.layout": "native", "author": "y"}))
        self.run_tool("merge", native, third, self.path("m.safetensors"))
        self.assertEqual(read_safetensors(self.path("m.safetensors"))[1], {"ballast.layout": "native", "author": "x"})

    def test_ballasts_own_layout_is_marked_in_pt_files_too_and_refused_where_it_cannot_be(self):
        native = self.file("native.safetensors", safetensors([("fc.weight", "F32", [2, 3], floats(*range(6)))], {"ballast.layout": "native"}))
        previous = native
        for suffix in ("pt", "record", "mpk", "bpk", "pt", "safetensors"):
            self.run_tool("convert", previous, self.path(f"next.{suffix}"), "-f", *(["--layout", "native"] if suffix in ("mpk", "bpk") else []))
            previous = self.path(f"next.{suffix}")
            self.assertEqual((self.run_json("ls", previous)["metadata"] or {}).get("ballast.layout"), "native", suffix)
        _, err = self.run_tool("convert", native, self.path("n.npz"), code=2)
        self.assertIn("[not-representable]", err)

    def test_diff_with_a_tolerance_compares_whole_numbers_exactly(self):
        def ids(name, *values):
            return self.file(name, safetensors([("ids", "I64", [len(values)], struct.pack(f"<{len(values)}q", *values))]))

        a = ids("a.safetensors", 2**53, 5)
        self.run_tool("diff", a, ids("b.safetensors", 2**53 + 1, 5), "--tolerance", "0.5", code=1)
        self.run_tool("diff", a, ids("b.safetensors", 2**53 + 1, 5), "--tolerance", "1")
        report = self.run_json("diff", ids("c.safetensors", -(2**63), 2**63 - 1), ids("d.safetensors", -(2**63) + 1, 2**63 - 1), "--tolerance", "0.1", code=1)
        self.assertEqual([(t["differing"], t["outside"], t["first"], t["max_abs"]) for t in report["tensors"]], [(1, 1, 0, 1.0)])

    def test_a_cast_by_rule_reports_values_that_became_infinite_as_dtype_does(self):
        source = self.file("big.safetensors", safetensors([("w", "F32", [3], floats(1e6, 1, -7e4))]))
        rules = self.file("r.json", b'{"rules": [{"match": "w", "cast": "f16"}]}')
        report = self.run_json("convert", source, self.path("o.safetensors"), "--rules", rules, code=1)
        self.assertEqual(report["overflowed"], 2)

    def test_rules_that_would_be_left_undone_are_refused(self):
        source = self.small()
        for rule in (
            {"match": "w", "do": [{"transpose": [0, 1]}, {"flip": 0}]},
            {"match": "w", "do": {"transpose": [0, 1]}},
            {"match": "w", "split": {"to": ["a", "b"]}, "cast": "f16"},
            {"match": "w", "split": {"to": ["a", "b"]}, "to": "c"},
            {"match": "w", "split": {"to": ["a", ""]}},
            {"match": "w", "split": {"to": []}},
            {"match": "w", "alias": "x", "drop": True},
            {"match": "w", "alias": "x", "to": "y"},
            {"match": "w", "alias": ""},
            {"match": "w", "drop": True, "to": "y"},
            {"match": "w", "transpose": [0, 1], "to": ""},
            {"match": "w", "transpose": [0, 1], "do": [{"cast": "f16"}]},
            {"match": "w", "concat": {"with": ["b.bias"], "to": ""}},
            {"match": "w"},
        ):
            rules = self.file("r.json", json.dumps({"rules": [rule]}).encode())
            _, err = self.run_tool("convert", source, self.path("o.safetensors"), "--rules", rules, code=2)
            self.assertIn("rule 1", err, rule)
            self.assertIn("[bad-json]", err, rule)

    def test_a_rename_that_leaves_nothing_of_a_name_is_refused(self):
        _, err = self.run_tool("convert", self.small(), self.path("o.safetensors"), "--rename", "^steps$=", code=2)
        self.assertIn("[bad-name]", err)

    def test_only_the_statistics_of_a_batch_norm_keep_their_dtype(self):
        tensors = [(name, "F32", shape, floats(*[0.1] * (shape[0] if len(shape) == 1 else 4)))
                   for name, shape in (("bn.running_mean", [2]), ("bn.running_var", [2]), ("ema.running_mean", [2]), ("x.running_mean", [2, 2]), ("x.running_var", [2, 2]), ("norm.weight", [2]))]
        source = self.file("s.safetensors", safetensors(tensors))
        self.run_tool("convert", source, self.path("h.safetensors"), "--dtype", "f16")
        found, _ = read_safetensors(self.path("h.safetensors"))
        self.assertEqual({name for name, t in found.items() if t[0] == "F32"}, {"bn.running_mean", "bn.running_var"})

    def test_an_npz_may_begin_with_a_member_of_any_name(self):
        def npy(value):
            header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
            header += b" " * (-(len(header) + 11) % 64) + b"\n"
            return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + floats(value)

        for length in (1, 470, 478, 479, 480, 481, 482, 483, 1000, 60000):
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as archive:
                archive.writestr("n" * length + ".npy", npy(2.5))
            report = self.run_json("ls", self.file("n.npz", out.getvalue()))
            self.assertEqual((report["format"], report["tensors"][0]["name"]), ("npz", "n" * length))


FIXTURES = SOURCE / "tests/fixtures/torch/files"


def zip_with(source, change):
    """The archive with change(name, content) for every content."""
    out = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return out.getvalue()


class Quantized(CliTest):
    """PyTorch's own: the integers stay the same, what they stand for does not."""

    def assert_different(self, a, b):
        self.run_tool("diff", str(a), b, code=1)
        self.assertNotEqual(self.run_json("hash", str(a))["root"], self.run_json("hash", b)["root"])

    def test_diff_and_hash_see_another_scale_and_another_zero_point(self):
        source = FIXTURES / "quant_qint8_sliced.pt"
        scale = b"G" + struct.pack(">d", 0.05)
        same = self.file("same.pt", zip_with(source, lambda name, content: content))
        self.run_tool("diff", str(source), same)
        self.assertEqual(self.run_json("hash", str(source))["root"], self.run_json("hash", same)["root"])
        other = self.file("scale.pt", zip_with(source, lambda name, content: content.replace(scale, b"G" + struct.pack(">d", 0.06))))
        self.assert_different(source, other)

        def next_zero_point(name, content):
            at = content.find(scale)
            if not name.endswith("data.pkl"):
                return content
            at += len(scale)
            self.assertIn(content[at : at + 1], (b"K", b"J"), "the zero point follows the scale")
            return content[: at + 1] + bytes([content[at + 1] ^ 1]) + content[at + 2 :]

        self.assert_different(source, self.file("point.pt", zip_with(source, next_zero_point)))

    def test_diff_and_hash_see_another_scale_of_one_channel(self):
        for name in ("quant_qint8_channel.pt", "quant_qint8_channel_axis1.pt", "quant_qint32_channel.pt"):
            source = FIXTURES / name
            with zipfile.ZipFile(source) as archive:
                pickled = archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
            key = re.search(rb"DoubleStorage\n.*?X\x01\0\0\0(\d)", pickled, re.S).group(1).decode()

            def change(entry, content):
                return struct.pack("<d", struct.unpack("<d", content[:8])[0] * 2) + content[8:] if entry.endswith("data/" + key) else content

            self.assert_different(source, self.file("other.pt", zip_with(source, change)))


class Roots(CliTest):
    """The guide: one clear candidate is taken; what would be lost beside it makes it unclear."""

    def pt(self, name, tree):
        """{key: tree or number of floats} as torch.save writes it, by Python's own pickle."""
        torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
        torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
        utils._rebuild_tensor_v2 = lambda *_: None
        utils._rebuild_tensor_v2.__module__, utils._rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
        sizes = []

        class Storage(int):
            pass

        class Tensor:
            def __init__(self, count):
                sizes.append(count)
                self.args = (Storage(len(sizes) - 1), 0, (count,), (1,), False, OrderedDict())

            def __reduce__(self):
                return utils._rebuild_tensor_v2, self.args

        class Pickler(pickle.Pickler):
            def persistent_id(self, value):
                return ("storage", torch.FloatStorage, str(int(value)), "cpu", sizes[value]) if isinstance(value, Storage) else None

        def built(value):
            return {key: built(below) for key, below in value.items()} if isinstance(value, dict) else Tensor(value) if isinstance(value, int) else value

        out, archive = io.BytesIO(), io.BytesIO()
        with mock.patch.dict("sys.modules", {"torch": torch, "torch._utils": utils}):
            Pickler(out, protocol=2).dump(built(tree))
        with zipfile.ZipFile(archive, "w") as made:
            made.writestr("archive/data.pkl", out.getvalue())
            for i, count in enumerate(sizes):
                made.writestr(f"archive/data/{i}", floats(*[i + 0.5] * count))
            made.writestr("archive/version", "3\n")
        return self.file(name, archive.getvalue())

    def names(self, tree):
        self.run_tool("convert", self.pt("c.pt", tree), self.path("o.safetensors"), "-f")
        return set(read_safetensors(self.path("o.safetensors"))[0])

    def test_nothing_beside_a_part_of_the_model_is_lost(self):
        part = {"w": 3, "b": 1}
        self.assertEqual(self.names({"encoder": part, "optics": part}), {"encoder.w", "encoder.b", "optics.w", "optics.b"})
        self.assertEqual(self.names({"encoder": part, "logit_scale": 1}), {"encoder.w", "encoder.b", "logit_scale"})
        self.assertEqual(self.names({"encoder": part, "schedule_net": part}), {"encoder.w", "encoder.b", "schedule_net.w", "schedule_net.b"})
        self.assertEqual(self.names({"encoder": part, "rngs": part}), {"encoder.w", "encoder.b", "rngs.w", "rngs.b"})

    def test_values_beside_the_tensors_are_said_to_be_left_out_where_they_are(self):
        source = self.pt("v.pt", {"w": 3, "layer": {"b": 1}, "epoch": 1.5, "name": "x"})
        for out, steps, said in (("o.safetensors", (), True), ("o.npz", (), True), ("o.pt", ("--dtype", "f16"), True), ("o.pt", ("--exclude", "b"), True), ("o.pt", (), False)):
            _, err = self.run_tool("convert", source, self.path(out), "-f", *steps)
            self.assertEqual('2 values are left out, which no tensor is: "epoch", "name"' in err, said, (out, steps, err))

    def test_what_belongs_to_the_training_is_left_out_as_before(self):
        part = {"w": 3, "b": 1}
        for key in ("optimizer", "optimizer_state_dict", "optimizerG", "opt", "optim", "scheduler", "rng_state", "scaler"):
            self.assertEqual(self.names({"encoder": part, key: {"state": {"x": 2}}, "epoch": 1.5}), {"w", "b"}, key)
        self.assertEqual(self.names({"state_dict": part, "loss": 1, "epoch": 1.5}), {"w", "b"})


if __name__ == "__main__":
    unittest.main()
