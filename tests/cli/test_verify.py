# SPDX-License-Identifier: Apache-2.0
"""ballast verify and stats: exactly what was planted is found."""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import time
import unittest

from cli_testing import BALLAST, CliTest, environment, floats, safetensors, write_hollow

NAN, INF = float("nan"), float("inf")


def bf16(*values):
    return b"".join(struct.pack("<f", v)[2:] for v in values)


def has_open(process, path):
    folder = f"/proc/{process}/fd"
    try:
        return any(os.readlink(f"{folder}/{number}") == path for number in os.listdir(folder))
    except FileNotFoundError:  # closed meanwhile
        return False


class Verify(CliTest):
    def planted(self):
        generator = random.Random(3)
        noise = [generator.gauss(0, 1) for _ in range(5000)]
        odd = list(noise)
        for at, value in ((17, NAN), (4000, NAN), (4999, NAN), (20, INF), (21, -INF)):
            odd[at] = value
        return [
            ("fine", "F32", [5000], floats(*noise)),
            ("f32", "F32", [50, 100], floats(*odd)),
            ("f64", "F64", [3], struct.pack("<3d", 1, NAN, -INF)),
            ("f16", "F16", [4], struct.pack("<4e", NAN, INF, 1, 65504)),
            ("bf16", "BF16", [4], bf16(NAN, 1, -INF, INF)),
            ("f8", "F8_E4M3", [4], bytes([0x7F, 0xFF, 0x7E, 0x00])),
            ("zeros", "F32", [8, 8], bytes(256)),
            ("minus zeros", "F32", [2], floats(-0.0, 0.0)),
            ("counter", "I64", [], bytes(8)),
            ("mask", "BOOL", [4], bytes([0, 1, 0, 0])),
            ("nothing", "F32", [0, 7], b""),
        ]

    def test_finds_exactly_what_was_planted(self):
        path = self.file("planted.safetensors", safetensors(self.planted()))
        result = self.run_json("verify", path, code=1)
        found = {(f["name"], f["kind"]): f["count"] for f in result["findings"]}
        self.assertEqual(
            found,
            {("f32", "nan"): 3, ("f32", "inf"): 2, ("f64", "nan"): 1, ("f64", "inf"): 1, ("f16", "nan"): 1, ("f16", "inf"): 1,
             ("bf16", "nan"): 1, ("bf16", "inf"): 2, ("f8", "nan"): 2, ("zeros", "zero"): 64, ("minus zeros", "zero"): 2},
        )
        self.assertFalse(result["clean"])
        self.assertEqual(result["tensors"], 11)
        out, _ = self.run_tool("verify", path, code=1)
        self.assertIn("11 findings", out)
        self.assertRegex(out, r"f32 +NaN +F32 +\[50, 100\] +\[0, 17\] +3 of 5,000 values")

    def test_a_clean_file_is_one_line_and_zero(self):
        out, err = self.run_tool("verify", self.small())
        self.assertEqual(out, f"{self.path('small.safetensors')}: ok: 3 tensors, 32 B, every value finite\n")
        self.assertEqual(err, "")
        self.assertEqual(self.run_tool("verify", self.path("small.safetensors"), "-q"), ("", ""))

    def test_the_worst_file_decides_the_exit_code(self):
        clean, dirty = self.small(), self.file("d.safetensors", safetensors([("w", "F32", [1], floats(NAN))]))
        self.run_tool("verify", clean, dirty, code=1)
        out, err = self.run_tool("verify", dirty, self.path("absent"), clean, code=2)
        self.assertIn("ok", out)
        self.assertIn("absent", err)

    def test_zeros_and_magnitudes_as_asked(self):
        path = self.file("z.safetensors", safetensors([("bias", "F32", [4], bytes(16)), ("w", "F32", [2], floats(1, -200))]))
        self.run_tool("verify", path, code=1)
        self.run_tool("verify", path, "--allow-zeros")
        result = self.run_json("verify", path, "--allow-zeros", "--max-abs", "100", code=1)
        self.assertEqual([(f["name"], f["kind"]) for f in result["findings"]], [("w", "large")])
        self.run_tool("verify", path, "--exclude", "bias")

    def test_data_off_its_alignment_is_a_note_not_a_finding(self):
        path = self.file("m.safetensors", safetensors([("a", "U8", [1], b"\1"), ("w", "F32", [1], floats(1))]))
        self.assertIn('"w"', " ".join(self.run_json("verify", path)["notes"]))

    def test_a_file_that_shrinks_meanwhile_is_one_line_and_two(self):
        path = write_hollow(self.path("shrinks.safetensors"), 3_000_000_000)
        process = subprocess.Popen([BALLAST, "verify", path, "-j", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        time.sleep(0.1)
        os.truncate(path, 100_000)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2, err)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertRegex(err.decode(), r"\[(file-changed|truncated)\]")


    def test_a_bus_error_of_the_mapping_is_a_message_and_not_a_core(self):
        path = write_hollow(self.path("large.safetensors"), 3_000_000_000)
        process = subprocess.Popen([BALLAST, "verify", path, "--json", "-j", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        while process.poll() is None and not has_open(process.pid, path):
            time.sleep(0.01)
        process.send_signal(signal.SIGBUS)  # what the kernel sends when a mapped page is gone
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2, err)
        self.assertEqual(err.decode(), f"ballast: {path}: changed or shrank while it was read [file-changed]\n")
        self.assertEqual(json.loads(out)["error"]["code"], "file-changed")


class Stats(CliTest):
    def test_numbers_are_those_of_the_values(self):
        path = self.file("s.safetensors", safetensors([("w", "F32", [5], floats(1, 2, 3, 0, NAN)), ("none", "F32", [1], floats(NAN))]))
        tensors = self.run_json("stats", path)["tensors"]
        w = tensors[0]
        self.assertEqual((w["count"], w["nan"], w["inf"], w["zeros"], w["min"], w["max"], w["mean"]), (5, 1, 0, 1, 0, 3, 1.5))
        self.assertAlmostEqual(w["std"], 1.25**0.5, places=12)
        self.assertIsNone(tensors[1]["min"])
        out, _ = self.run_tool("stats", path)
        self.assertIn("1.118", out)


class Receipts(CliTest):
    def test_a_true_claim_is_true_whatever_is_all_zero(self):
        zeros = [("fc.weight", "F32", [2], floats(1, 2)), ("fc.bias", "F32", [2], floats(0, 0)), ("n.bias", "F32", [3], floats(0, 0, 0))]
        source, out, receipt = self.file("a.safetensors", safetensors(zeros)), self.path("b.safetensors"), self.path("r.json")
        self.run_tool("convert", source, out, "--receipt", receipt, "--rename", "^fc=head")
        for file, name in ((out, "head.bias"), (source, "fc.bias")):
            self.run_tool("verify", file, code=1)
            said = self.run_json("verify", file, "--receipt", receipt)
            self.assertEqual((said["clean"], said["findings"]), (True, []))
            self.assertTrue(any(f'2 tensors are all zero ("{name}", …)' in note for note in said["notes"]), said["notes"])
        self.assertFalse(any("zero" in note for note in self.run_json("verify", out, "--receipt", receipt, "--allow-zeros")["notes"]))

    def test_a_false_claim_and_values_that_are_not_finite_are_found_beside_it(self):
        source, out, receipt = self.file("a.safetensors", safetensors([("w", "F32", [2], floats(float("nan"), 1)), ("z", "F32", [2], floats(0, 0))])), self.path("b.safetensors"), self.path("r.json")
        self.run_tool("convert", source, out, "--receipt", receipt)
        self.assertEqual([f["kind"] for f in self.run_json("verify", out, "--receipt", receipt, code=1)["findings"]], ["nan"])
        self.run_tool("meta", out, "set", "a=b")
        kinds = {f["kind"] for f in self.run_json("verify", out, "--receipt", receipt, code=1)["findings"]}
        self.assertEqual(kinds, {"receipt", "nan", "zero"})

    def test_every_fact_of_the_output_in_a_receipt_is_compared(self):
        source, out, path = self.file("a.safetensors", safetensors([("w", "F32", [2], floats(1, 2))])), self.path("b.safetensors"), pathlib.Path(self.path("r.json"))
        self.run_tool("convert", source, out, "--receipt", path, "--rename", "^w$=u")
        receipt = json.loads(path.read_text())
        for change in (lambda o: o["files"][0].update(bytes=7), lambda o: o["files"][0].update(sha256="0" * 64), lambda o: o.update(root="0" * 64),
                       lambda o: o["tensors"][0].update(name="v"), lambda o: o["tensors"][0].update(dtype="F16"), lambda o: o["tensors"][0].update(shape=[1, 2]),
                       lambda o: o["tensors"][0].update(bytes=9), lambda o: o["tensors"][0].update(sha256="1" * 64)):
            told = json.loads(json.dumps(receipt))
            change(told["output"])
            path.write_text(json.dumps(told))
            self.assertIn("receipt", {f["kind"] for f in self.run_json("verify", out, "--receipt", path, code=1)["findings"]}, told["output"])


    def test_by_tensors_alone_the_header_the_format_and_the_files_may_be_others(self):
        source = self.file("a.safetensors", safetensors([("fc.w", "F32", [2], floats(1, 2)), ("fc.b", "F32", [2], floats(0, 0))]))
        out, receipt = self.path("b.safetensors"), self.path("r.json")
        self.run_tool("convert", source, out, "--receipt", receipt, "--rename", "^fc=head")
        self.run_tool("convert", out, self.path("c.pt"))
        self.run_tool("shard", out, self.path("s") + "/", "--shard-size", "8")
        self.run_tool("convert", source, self.path("d.npz"))
        self.run_tool("meta", out, "set", "license=mit")
        for file, word in ((out, "wrote"), (self.path("c.pt"), "wrote"), (self.path("s"), "wrote"), (source, "read"), (self.path("d.npz"), "read")):
            self.run_tool("verify", file, "--receipt", receipt, code=0 if file == source else 1)
            said = self.run_json("verify", file, "--receipt", receipt, "--tensors-only")
            self.assertEqual((said["clean"], said["findings"]), (True, []))
            self.assertIn(f"it has the tensors that the receipt's conversion {word}; its own bytes were not compared", said["notes"])
        for steps in (["--dtype", "f16"], ["--exclude", "b$"], ["--rename", "w$=v"]):
            self.run_tool("convert", source, self.path("e.safetensors"), "-f", *steps)
            found = self.run_json("verify", self.path("e.safetensors"), "--receipt", receipt, "--tensors-only", code=1)["findings"]
            self.assertIn("receipt", {finding["kind"] for finding in found}, steps)
        self.run_tool("verify", out, "--tensors-only", code=2)


class Places(CliTest):
    def test_the_first_value_that_is_not_finite_is_named(self):
        nan, inf = float("nan"), float("inf")
        path = self.file("n.safetensors", safetensors([("w", "F32", [2, 3], floats(1, 2, 3, 4, nan, nan)), ("v", "F16", [3], b"\0<\0|\0~"), ("s", "F32", [], floats(inf))]))
        found = {(f["name"], f["kind"]): f["first"] for f in self.run_json("verify", path, code=1)["findings"]}
        self.assertEqual(found, {("w", "nan"): 4, ("v", "nan"): 2, ("v", "inf"): 1, ("s", "inf"): 0})
        out, _ = self.run_tool("verify", path, code=1)
        rows = [line.split() for line in out.splitlines()[1:]]
        self.assertEqual(rows[:2], [["TENSOR", "WHAT", "DTYPE", "SHAPE", "FIRST", "HOW", "MANY"], ["w", "NaN", "F32", "[2,", "3]", "[1,", "1]", "2", "of", "6", "values"]])
        self.assertIn(["s", "Inf", "F32", "[]", "[]", "1", "of", "1", "values"], rows)


class Folding(CliTest):
    def test_findings_that_differ_in_a_number_share_a_row(self):
        tensors = [(f"layers.{i}.bias", "F32", [3], floats(0, 0, 0)) for i in range(12)] + [("a.bias", "F32", [3], floats(0, 0, 0)), ("layers.1.w", "F32", [2], floats(float("nan"), 1))]
        path = self.file("z.safetensors", safetensors(tensors))
        out, _ = self.run_tool("verify", path, "--fold", code=1)
        rows = [line.split() for line in out.splitlines()[2:]]
        self.assertEqual(rows, [["layers.#.bias", "\u00d712", "all", "zero", "F32", "[3]", "36", "values"], ["a.bias", "all", "zero", "F32", "[3]", "3", "values"],
                                ["layers.1.w", "NaN", "F32", "[2]", "[0]", "1", "of", "2", "values"]])  # fmt: skip
        self.assertEqual(len(self.run_tool("verify", path, code=1)[0].splitlines()), 16)
        self.assertEqual(len(self.run_json("verify", path, "--fold", code=1)["findings"]), 14)
        self.assertIn("--no-fold", self.run_on_terminal("verify", path, rows=12)[0])
        self.assertNotIn("\u00d7", self.run_on_terminal("verify", path, "--no-fold", rows=12)[0])


if __name__ == "__main__":
    unittest.main()
