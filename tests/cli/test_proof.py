# SPDX-License-Identifier: Apache-2.0
"""ballast hash, diff, receipts, records: what they say is recomputed here."""
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest

from cli_testing import SOURCE, CliTest, floats, read_safetensors, safetensors


class Hash(CliTest):
    def test_the_ten_lines_of_the_document_give_the_same_root(self):
        text = (SOURCE / "docs/proof.md").read_text()
        script = self.file("root.py", re.search(r"```python\n(.*?)```", text, re.S).group(1).encode())
        tensors = [("b.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("a/ü", "I64", [], struct.pack("<q", 7)), ("empty", "BF16", [0, 3], b"")]
        for name, order in (("x", tensors), ("y", tensors[::-1])):
            path = self.file(name + ".safetensors", safetensors(order, {"author": name}))
            root = subprocess.run([sys.executable, script, path], capture_output=True, text=True, check=True).stdout.strip()
            self.assertEqual(self.run_json("hash", path)["root"], root)
            out, _ = self.run_tool("hash", path, "--root-only")
            self.assertEqual(out.split()[0], root)

    def test_another_format_has_the_same_root(self):
        source = self.small()
        for name in ("a.pt", "b.record", "c.safetensors"):
            self.run_tool("convert", source, self.path(name))
        out, _ = self.run_tool("hash", "--root-only", source, *(self.path(n) for n in ("a.pt", "b.record", "c.safetensors")))
        self.assertEqual(len({line.split()[0] for line in out.splitlines()}), 1)
        self.run_tool("convert", source, self.path("half.pt"), "--dtype", "half")
        self.assertNotEqual(self.run_json("hash", self.path("half.pt"))["root"], self.run_json("hash", source)["root"])

    def test_every_way_to_read_gives_the_same_bytes(self):
        data = bytes(range(251)) * 4000  # a megabyte that no block size divides
        source = self.file("a.safetensors", safetensors([("w", "U8", [len(data)], data), ("x", "U8", [3], b"abc")]))
        root = self.run_json("hash", source)["root"]
        for way in ("auto", "map", "read", "direct"):
            with self.subTest(way):
                if way == "direct" and not self.allows_direct(source):
                    self.skipTest("this file system does not allow it")
                self.assertEqual(self.run_json("hash", "--io", way, source)["root"], root)
                for out in ("b.pt", "b.safetensors"):
                    self.run_tool("convert", "-f", "--io", way, source, self.path(out))
                    self.assertEqual(self.run_json("hash", self.path(out))["root"], root, out)
                self.run_tool("verify", "--io", way, source)
                self.run_tool("diff", "--io", way, source, self.path("b.pt"))
        self.run_tool("hash", "--io", "mmap", source, code=2)

    def allows_direct(self, path):
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
        except OSError:
            return False
        return True

    def test_lines_are_a_hash_and_a_name(self):
        out, _ = self.run_tool("hash", self.small())
        self.assertRegex(out.splitlines()[0], r"^[0-9a-f]{64}  b\.bias$")
        self.assertEqual(len(out.splitlines()), 4)


class Diff(CliTest):
    def pair(self):
        a = self.file("a.safetensors", safetensors([("w", "F32", [3], floats(1, 2, 3)), ("same", "F32", [1], floats(5)), ("old", "F32", [2], floats(8, 9)), ("gone", "U8", [1], b"\1")]))
        b = self.file("b.safetensors", safetensors([("w", "F32", [3], floats(1, 2.5, 3)), ("same", "F32", [1], floats(5)), ("new", "F32", [2], floats(8, 9)), ("came", "U8", [1], b"\2")]))
        return a, b

    def test_says_what_differs_and_exits_with_one(self):
        result = self.run_json("diff", *self.pair(), code=1)
        by_name = {t["name"]: t for t in result["tensors"]}
        self.assertEqual({k: t["change"] for k, t in by_name.items()},
                         {"w": "values", "same": "equal", "old": "renamed", "gone": "only-a", "came": "only-b"})
        w = by_name["w"]
        self.assertEqual((w["differing"], w["first"], w["max_abs"], w["values"], w["bit_equal"]), (1, 1, 0.5, 3, False))
        self.assertAlmostEqual(w["max_rel"], 0.2)
        self.assertEqual(w["max_ulp"], 0x40200000 - 0x40000000)
        self.assertAlmostEqual(w["cosine"], 15 / (14 * 16.25) ** 0.5)
        self.assertEqual(by_name["old"]["other"], "new")
        self.assertFalse(result["same"])

    def test_equal_files_of_two_formats_exit_with_zero(self):
        source = self.small()
        self.run_tool("convert", source, self.path("a.pt"))
        out, _ = self.run_tool("diff", source, self.path("a.pt"))
        self.assertEqual(out, "3 equal\n")
        self.run_tool("convert", source, self.path("h.safetensors"), "--dtype", "bf16")
        self.run_tool("diff", source, self.path("h.safetensors"), code=1)
        self.run_tool("diff", source, self.path("h.safetensors"), "--tolerance", "0.01")

    def test_text_and_markdown(self):
        a, b = self.pair()
        out, _ = self.run_tool("diff", a, b, code=1)
        self.assertRegex(out, r"w +values +F32 \[3\] +1 of 3 +0\.5 +0\.2")
        self.assertNotIn("same", out)
        self.assertIn("1 equal, 1 values, 1 renamed, 1 only-a, 1 only-b", out)
        out, _ = self.run_tool("diff", a, b, "--markdown", "--all", code=1)
        self.assertIn("| w | values | F32 \\[3] | 1 of 3 | 0.5 | 0.2 |", out)
        self.assertIn("| same | equal |", out)

    def test_what_cannot_be_read_exits_with_two(self):
        self.run_tool("diff", self.small(), self.path("nowhere"), code=2)


class Records(CliTest):
    def record(self, *options):
        self.run_tool("convert", self.small(), self.path("r.record"), "-f", *options)
        return self.path("r.record")

    def test_a_record_is_a_safetensors_file_that_says_it_is_one(self):
        tensors, metadata = read_safetensors(self.record())
        self.assertEqual(tensors["b.weight"], ("F32", [2, 2], floats(1, 2, 3, 4)))
        self.assertEqual((metadata["ballast.record"], metadata["ballast.layout"], metadata["author"]), ("1", "pytorch", "somebody"))
        self.assertEqual(set(json.loads(metadata["ballast.xxh3"])), set(tensors))
        self.assertEqual(self.run_json("ls", self.record())["format"], "record")

    def test_verify_finds_a_changed_byte(self):
        path = pathlib.Path(self.record())
        self.run_tool("verify", str(path))
        blob = bytearray(path.read_bytes())
        blob[-1] ^= 1
        path.write_bytes(blob)
        result = self.run_json("verify", str(path), code=1)
        self.assertEqual([f["kind"] for f in result["findings"]], ["checksum"])
        self.assertIn("XXH3", result["findings"][0]["message"])

    def test_a_newer_version_is_listed_and_not_verified_or_converted(self):
        path = pathlib.Path(self.record())
        path.write_bytes(path.read_bytes().replace(b'"ballast.record":"1"', b'"ballast.record":"9"'))
        _, err = self.run_tool("ls", str(path))
        self.assertIn("newer than this Ballast", err)
        for command in (["verify", str(path)], ["convert", str(path), self.path("o.safetensors")]):
            _, err = self.run_tool(*command, code=2)
            self.assertIn("[unsupported]", err)

    def test_quantizing_reports_the_error_of_each_tensor(self):
        values = [((i * 37) % 101 - 50) / 17 for i in range(64)]
        source = self.file("q.safetensors", safetensors([("w", "F32", [4, 16], floats(*values)), ("b", "F32", [4], floats(1, 2, 3, 4))]))
        result = self.run_json("convert", source, self.path("q.record"), "--quantize", "int8")
        tensors, metadata = read_safetensors(self.path("q.record"))
        values = struct.unpack("<64f", floats(*values))
        worst, noise = 0, 0
        for row in range(4):
            channel = values[row * 16 : row * 16 + 16]
            scale = struct.unpack("<f", struct.pack("<f", max(map(abs, channel)) / 127))[0]
            integers = [round(v / scale) for v in channel]
            self.assertEqual(tensors["w"][2][row * 16 : row * 16 + 16], struct.pack("<16b", *integers))
            errors = [v - q * scale for v, q in zip(channel, integers)]
            worst, noise = max(worst, *map(abs, errors)), noise + sum(e * e for e in errors)
        (report,) = result["quantized"]
        import math
        self.assertAlmostEqual(report["max_error"], worst, 6)
        self.assertAlmostEqual(report["snr_db"], 10 * math.log10(sum(v * v for v in values) / noise), 3)
        self.assertEqual(json.loads(metadata["ballast.quantized"])["w"], {"scheme": "int8", "axis": 0, "scale": "w_scale", "dtype": "F32"})
        out, _ = self.run_tool("convert", source, self.path("q.record"), "-f", "--quantize", "int8")
        self.assertRegex(out, r"w +0 +0\.\d+ +\d+\.\d dB")
        self.run_tool("diff", source, self.path("q.record"), "--tolerance", str(worst * 1.0001))
        self.run_tool("diff", source, self.path("q.record"), "--tolerance", str(worst * 0.9), code=1)

    def test_statistics_of_norms_stay_wide(self):
        source = self.file("n.safetensors", safetensors([("bn.running_mean", "F32", [1], floats(0)), ("bn.running_var", "F32", [1], floats(1e-6)), ("w", "F32", [1], floats(0.1))]))
        self.run_tool("convert", source, self.path("h.safetensors"), "--dtype", "half")
        dtypes = lambda name: {k: v[0] for k, v in read_safetensors(self.path(name))[0].items()}
        self.assertEqual(dtypes("h.safetensors"), {"bn.running_mean": "F32", "bn.running_var": "F32", "w": "F16"})
        self.run_tool("convert", source, self.path("k.safetensors"), "--dtype", "half", "--keep-dtype", "^w$")
        self.assertEqual(dtypes("k.safetensors"), {"bn.running_mean": "F32", "bn.running_var": "F32", "w": "F32"})


class Receipts(CliTest):
    def test_a_receipt_holds_what_sha256_says_and_fits_its_files_only(self):
        source, target, receipt = self.small(), self.path("o.pt"), self.path("r.json")
        self.run_tool("convert", source, target, "--rename", "^b=c", "--receipt", receipt)
        told = json.loads(pathlib.Path(receipt).read_text())
        for side, path in (("input", source), ("output", target)):
            self.assertEqual(told[side]["files"][0]["sha256"], hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest())
        self.assertEqual(told["output"]["root"], self.run_json("hash", target)["root"])
        self.assertEqual(told["steps"]["rename"], [{"pattern": "^b", "to": "c"}])
        for path, word in ((target, "wrote"), (source, "read")):
            _, err = self.run_tool("verify", path, "--receipt", receipt)
            self.assertIn(word, err)
        other = self.file("other.safetensors", safetensors([("c.weight", "F32", [1], floats(1))]))
        result = self.run_json("verify", other, "--receipt", receipt, code=1)
        self.assertEqual({f["kind"] for f in result["findings"]}, {"receipt"})

    def test_a_receipt_that_is_none_is_an_error(self):
        for text in (b"{}", b"[", b"nonsense"):
            self.run_tool("verify", self.small(), "--receipt", self.file("r.json", text), code=2)


class Embed(CliTest):
    def test_the_header_names_every_tensor_and_its_place(self):
        self.run_tool("convert", self.small(), self.path("r.record"))
        out, _ = self.run_tool("embed", self.path("r.record"), "--symbol", "weights")
        blob = pathlib.Path(self.path("r.record")).read_bytes()
        (offset,) = re.findall(r'"b\.weight", ballast::DType::f32, 4, 16, (\d+)', out)
        self.assertEqual(blob[int(offset) : int(offset) + 16], floats(1, 2, 3, 4))
        out, _ = self.run_tool("embed", self.path("r.record"), "--symbol", "weights", "--source")
        self.assertIn(str(len(blob)), out)
        self.run_tool("embed", self.path("r.record"), "--symbol", "not a name", code=2)
        self.run_tool("embed", self.small(), "--symbol", "weights", code=2)


if __name__ == "__main__":
    unittest.main()
