# SPDX-License-Identifier: Apache-2.0
"""Packed Safetensors files: an independent decoder reads what convert --pack writes, and every command reads them as if they were plain."""
import itertools
import json
import os
import pathlib
import struct
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError:  # Debian's python3-numpy, which scripts/deps test installs
    sys.exit(77)

from cli_testing import BALLAST, CliTest, environment, safetensors
from packed_reader import read_packed

SIGNER = pathlib.Path(__file__).resolve().parent.parent / "fixtures/signatures/files"
LENGTHS = (0, 1, 63, 64, 65, 65535, 65536, 65537, 131071, 131072, 131073, 262145)


def bits_of(dtype, values):
    """F32 values in the bits of `dtype`; 8-bit floats as whatever bytes the upper half has."""
    if dtype == "F32":
        return values.astype(np.float32).tobytes()
    if dtype == "F16":
        return values.astype(np.float16).tobytes()
    if dtype == "BF16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return (values.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8).tobytes()


def contents(dtype, length, random):
    """{what: bytes}"""
    one = lambda value: bits_of(dtype, np.full(length, value, np.float32))
    size = len(bits_of(dtype, np.zeros(1)))
    return {
        "weights": bits_of(dtype, random.normal(0, 0.02, length)),
        "nan": one(np.nan), "inf": one(-np.inf), "denormal": one(1e-40), "zero": one(0),
        "octave": bits_of(dtype, random.uniform(1, 2, length)),
        "random": random.bytes(length * size),
    }


class Packed(CliTest):
    def model(self, lengths=LENGTHS, dtypes=("BF16", "F32", "F16", "F8_E4M3", "F8_E5M2")):
        random, tensors = np.random.RandomState(4), []
        for dtype, length in itertools.product(dtypes, lengths):
            for what, data in contents(dtype, length, random).items():
                tensors.append((f"{dtype}.{length}.{what}", dtype, [length], data))
        for dtype, size in (("I64", 8), ("U8", 1), ("BOOL", 1), ("F64", 8)):
            tensors.append((f"{dtype}.other", dtype, [5000], bytes(i % 2 for i in range(5000 * size))))
        return self.file("plain.safetensors", safetensors(tensors, {"format": "pt", "k": "v"}))

    def small_model(self):
        random = np.random.RandomState(1)
        tensors = [(f"layers.{i}.weight", "BF16", [256, 300], bits_of("BF16", random.normal(0, 0.02, 76800))) for i in range(6)]
        tensors.append(("norm", "F32", [10], bits_of("F32", np.ones(10))))
        return self.file("model.safetensors", safetensors(tensors, {"format": "pt"}))

    def pack(self, source, how="fast", out=None, *more):
        out = out or self.path(f"{how}.safetensors")
        self.run_tool("convert", source, out, "--pack", how, *more)
        return out


class Bytes(Packed):
    def test_an_independent_decoder_reads_every_dtype_length_and_content(self):
        plain = self.model()
        expected, _, _ = read_packed(plain)
        for how, packs in (("fast", ("BF16", "F32")), ("small", ("BF16", "F32", "F16", "F8_E4M3", "F8_E5M2"))):
            found, names, kinds = read_packed(self.pack(plain, how))
            self.assertEqual(set(found), set(expected))
            for name, tensor in expected.items():
                self.assertEqual(found[name], tensor, name)
            self.assertEqual({name.split(".")[0] for name in names}, set(packs))
            self.assertFalse([name for name in names if name.endswith("random") or ".0." in name or ".1." in name])
            for dtype in packs:
                self.assertTrue(f"{dtype}.131072.weights" in names, dtype)
            self.assertIn({"fast": 2, "small": 1}[how], kinds)

    def test_packed_tensors_gain_three_percent_and_plain_ones_would_not(self):
        plain = self.model()
        tensors, _, _ = read_packed(plain)
        for how in ("fast", "small"):
            out = self.pack(plain, how)
            _, names, _ = read_packed(out)
            listed = {t["name"]: t for t in self.run_json("ls", out)["tensors"]}
            self.assertEqual({name for name, t in listed.items() if "packed" in t}, names)
            for name in names:
                self.assertLessEqual(listed[name]["packed"], 0.975 * listed[name]["bytes"], name)
            self.assertLess(os.path.getsize(out), os.path.getsize(plain))

    def test_the_file_is_the_same_whatever_the_number_of_threads_and_after_a_round_trip(self):
        plain = self.model()
        for how in ("fast", "small"):
            out = self.pack(plain, how)
            first = pathlib.Path(out).read_bytes()
            for threads in (1, 3, 16):
                self.run_tool("convert", plain, out, "--pack", how, "-f", env=environment(OMP_NUM_THREADS=str(threads)))
                self.assertEqual(pathlib.Path(out).read_bytes(), first, threads)
            back, again = self.path("back.safetensors"), self.path("again.safetensors")
            self.run_tool("convert", out, back, "-f")
            self.run_tool("convert", back, again, "--pack", how, "-f")
            self.assertEqual(pathlib.Path(again).read_bytes(), first)
            self.run_tool("convert", out, again, "--pack", how, "-f")
            self.assertEqual(pathlib.Path(again).read_bytes(), first)

    def test_unpacked_again_it_is_the_plain_file(self):
        plain, straight, back = self.small_model(), self.path("straight.safetensors"), self.path("back.safetensors")
        self.run_tool("convert", plain, straight)
        for how in ("fast", "small"):
            self.run_tool("convert", self.pack(plain, how), back, "-f")
            self.assertEqual(pathlib.Path(back).read_bytes(), pathlib.Path(straight).read_bytes())


class Commands(Packed):
    def test_every_command_sees_what_it_sees_of_the_plain_file(self):
        plain = self.small_model()
        for how, io in itertools.product(("fast", "small"), ("map", "read")):
            packed = self.pack(plain, how, None, "-f")
            self.run_tool("diff", plain, packed, "--io", io)
            self.run_tool("verify", packed, "--io", io)
            for command in (["hash", "--root-only"], ["stats"]):
                a, b = (self.run_tool(command[0], path, *command[1:], "--io", io)[0] for path in (plain, packed))
                # In the order of the file, which is another one.
                self.assertEqual(sorted(a.replace(str(plain), "").splitlines()), sorted(b.replace(str(packed), "").splitlines()), command)

    def test_other_formats_are_made_of_it_as_of_the_plain_file(self):
        plain = self.small_model()
        packed = self.pack(plain, "small")
        for extension in (".pt", ".record", ".npz", ".safetensors"):
            a, b = self.path("a" + extension), self.path("b" + extension)
            steps = ["--dtype", "f32"] if extension == ".npz" else []
            self.run_tool("convert", plain, a, *steps)
            self.run_tool("convert", packed, b, *steps)
            self.run_tool("diff", a, b)

    def test_names_and_shards_change_and_bytes_do_not(self):
        plain = self.small_model()
        packed, renamed = self.pack(plain, "fast"), self.path("renamed.safetensors")
        self.run_tool("convert", packed, renamed, "--rename", "layers=blocks")
        tensors, names, _ = read_packed(renamed)
        self.assertEqual(names, set())
        self.assertEqual(tensors["blocks.0.weight"], read_packed(plain)[0]["layers.0.weight"])
        self.run_tool("shard", packed, self.path("out") + "/", "--shard-size", "400KB", "--pack", "small")
        shards = sorted(pathlib.Path(self.path("out")).glob("*.safetensors"))
        self.assertGreater(len(shards), 1)
        self.assertTrue(read_packed(shards[0])[1])
        self.run_tool("diff", plain, self.path("out"))
        for how in ((), ("--pack", "fast")):
            self.run_tool("merge", self.path("out"), self.path("merged.safetensors"), "-f", *how)
            self.assertEqual(bool(read_packed(self.path("merged.safetensors"))[1]), bool(how))
            self.run_tool("diff", plain, self.path("merged.safetensors"))

    def test_ls_says_what_is_packed_and_how_much_room_it_takes(self):
        packed = self.pack(self.small_model(), "fast")
        text, said = self.run_tool("ls", packed)
        self.assertIn("PACKED", text)
        self.assertRegex(said, r"6 of 7 tensors are packed: \d+ bytes in the file for 921600")
        plain, _ = self.run_tool("ls", self.folder / "model.safetensors")
        self.assertNotIn("PACKED", plain)
        self.assertNotIn("ballast.packed", json.dumps(self.run_json("ls", packed)["metadata"]))

    def test_metadata_is_changed_and_the_tensors_stay_packed(self):
        plain = self.small_model()
        packed = self.pack(plain, "fast")
        size = os.path.getsize(packed)
        self.run_tool("meta", packed, "set", "license=mit")
        self.assertEqual(self.run_tool("meta", packed, "get", "license")[0].strip(), "mit")
        self.assertTrue(read_packed(packed)[1])
        self.assertLess(abs(os.path.getsize(packed) - size), 200 + 640)  # the room a first edit leaves
        self.run_tool("diff", plain, packed)
        self.run_tool("meta", packed, "rm", "license", "format")
        self.run_tool("diff", plain, packed)
        self.run_tool("meta", packed, "set", "ballast.packed={}", "-f", code=2)

    def test_packed_and_then_encrypted(self):
        plain, key = self.small_model(), self.folder / "key.txt"
        recipient = self.run_tool("keygen", "-o", key)[0].strip()
        for how in ("fast", "small"):
            sealed = self.path(f"{how}.safetensors.age")
            self.run_tool("convert", plain, sealed, "--pack", how, "--recipient", recipient)
            self.assertLess(os.path.getsize(sealed), 0.72 * os.path.getsize(plain))
            self.run_tool("diff", plain, sealed, "--identity", key)
            self.run_tool("verify", sealed, "--identity", key)

    def test_packed_then_encrypted_then_signed(self):
        plain, key, out, receipt = self.small_model(), self.folder / "key.txt", self.folder / "out", self.path("out/receipt.json")
        recipient = self.run_tool("keygen", "-o", key)[0].strip()
        out.mkdir()
        sealed = out / "model.safetensors.age"
        self.run_tool("convert", plain, sealed, "--pack", "small", "--recipient", recipient, "--identity", key, "--receipt", receipt)
        self.run_tool("sign", out, "--key", SIGNER / "key-p256.pem", "-o", out / "model.sig")
        verify = ["verify", out, "--signature", out / "model.sig", "--key", SIGNER / "pub-p256.pem"]
        self.run_tool(*verify)
        self.run_tool("verify", sealed, "--receipt", receipt, "--identity", key)
        steps = json.loads(pathlib.Path(receipt).read_text())["steps"]
        self.assertEqual((steps["pack"], steps["recipients"]), ("small", [recipient]))
        roots = [self.run_tool("hash", path, "--root-only", "--identity", key)[0].split()[0] for path in (plain, sealed)]
        self.assertEqual(roots[0], roots[1])
        whole = bytearray(sealed.read_bytes())
        whole[len(whole) // 2] ^= 1
        sealed.write_bytes(whole)
        self.run_tool(*verify, code=1)
        self.run_tool("hash", sealed, "--identity", key, code=2)

    def test_a_receipt_of_a_packed_output_holds(self):
        plain, receipt = self.small_model(), self.path("r.json")
        packed = self.pack(plain, "small", None, "--receipt", receipt)
        self.run_tool("verify", packed, "--receipt", receipt)
        said = json.loads(pathlib.Path(receipt).read_text())
        self.assertEqual(said["input"]["root"], said["output"]["root"])
        self.assertEqual(said["steps"]["pack"], "small")

    def test_only_safetensors_files_and_records_are_packed(self):
        for name in ("x.pt", "x.npz"):
            _, said = self.run_tool("convert", self.small_model(), self.path(name), "--pack", "fast", code=2)
            self.assertIn("only Safetensors files and records are packed", said)

    def test_a_packed_record_is_a_record_of_the_same_tensors_and_is_not_embedded(self):
        plain, record = self.small_model(), self.path("m.record")
        self.run_tool("convert", plain, record, "--pack", "small", "--receipt", self.path("r.json"))
        self.assertLess(os.path.getsize(record), 0.72 * os.path.getsize(plain))
        self.assertEqual(self.run_json("ls", record)["format"], "record")
        self.run_tool("diff", plain, record)
        self.run_tool("verify", record, "--receipt", self.path("r.json"))
        self.assertEqual(self.run_tool("hash", plain, "--root-only")[0].split()[0], self.run_tool("hash", record, "--root-only")[0].split()[0])
        self.run_tool("meta", record, "set", "k=v", "-o", self.path("edited.record"))
        self.run_tool("verify", self.path("edited.record"))
        _, said = self.run_tool("embed", record, "--symbol", "weights", code=2)
        self.assertIn("is packed", said)
        self.run_tool("convert", record, self.path("plain.record"))
        self.run_tool("embed", self.path("plain.record"), "--symbol", "weights")


class Memory(Packed):
    """104 MB of weights, in 13 tensors."""

    def peak_megabytes(self, *arguments):
        """Of the command alone: a child of this process would count what this one holds until it runs its program."""
        measure = "import os, subprocess, sys; child = subprocess.Popen(sys.argv[1:]); _, status, used = os.wait4(child.pid, 0); print(used.ru_maxrss / 1024); sys.exit(os.waitstatus_to_exitcode(status))"
        done = subprocess.run([sys.executable, "-S", "-c", measure, BALLAST, *map(str, arguments), "-q"], env=environment(), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return float(done.stdout.split()[-1])

    def test_packing_and_unpacking_encrypted_or_not_take_less_than_50_mb(self):
        random = np.random.RandomState(2)
        data = bits_of("BF16", random.normal(0, 0.02, 4_000_000))
        plain = self.file("plain.safetensors", safetensors([(f"w{i}", "BF16", [2000, 2000], data) for i in range(13)]))
        key, back = self.folder / "key.txt", self.path("back.safetensors")
        recipient = self.run_tool("keygen", "-o", key)[0].strip()
        for how in ("fast", "small"):
            packed, sealed = self.path("packed.safetensors"), self.path("packed.safetensors.age")
            self.assertLess(self.peak_megabytes("convert", plain, packed, "--pack", how, "-f"), 50)
            self.assertLess(self.peak_megabytes("convert", plain, packed, "--pack", how, "-f", "--threads", "64"), 50)
            self.assertLess(self.peak_megabytes("convert", packed, back, "-f"), 50)
            self.assertLess(self.peak_megabytes("convert", plain, sealed, "--pack", how, "--recipient", recipient, "-f"), 50)
            self.assertLess(self.peak_megabytes("convert", sealed, back, "--identity", key, "-f"), 50)


class Damage(Packed):
    def test_a_changed_bit_of_the_data_is_found_by_verify_and_never_converted(self):
        plain = self.small_model()
        packed = pathlib.Path(self.pack(plain, "fast"))
        whole = bytearray(packed.read_bytes())
        start = 8 + struct.unpack("<Q", whole[:8])[0]
        whole[len(whole) - 20000] ^= 4
        self.assertGreater(len(whole) - 20000, start)
        packed.write_bytes(whole)
        found = self.run_json("verify", packed, code=1)["findings"]
        self.assertEqual([f["kind"] for f in found], ["checksum"])
        _, said = self.run_tool("convert", packed, self.path("x.safetensors"), code=2)
        self.assertIn("checksum", said)
        self.assertFalse(os.path.exists(self.path("x.safetensors")))

    def test_what_the_metadata_says_wrongly_is_refused_with_the_name_of_the_tensor(self):
        packed = pathlib.Path(self.pack(self.small_model(), "fast"))
        whole = packed.read_bytes()
        size = struct.unpack("<Q", whole[:8])[0]
        header, data = json.loads(whole[8 : 8 + size]), whole[8 + size :]
        name = "layers.0.weight"
        changes = {
            "another shape": lambda said: said[name].update(shape=[256, 301]),
            "a negative one": lambda said: said[name].update(shape=[-256, 300]),
            "a huge one": lambda said: said[name].update(shape=[256, 300 << 40]),
            "an overflow": lambda said: said[name].update(shape=[1 << 62, 1 << 62]),
            "no elements": lambda said: said[name].update(shape=[0, 300]),
            "another dtype": lambda said: said[name].update(dtype="F32"),
            "one that is not packed": lambda said: said[name].update(dtype="I16"),
            "no dtype": lambda said: said[name].pop("dtype"),
            "a short checksum": lambda said: said[name].update(xxh3="00"),
            "another checksum": lambda said: said[name].update(xxh3="0" * 16),
            "a tensor that is not there": lambda said: said.update({"other": said[name]}),
            "one that is not bytes": lambda said: said.update({"norm": said[name]}),
        }
        for what, change in changes.items():
            said = json.loads(header["__metadata__"]["ballast.packed"])
            change(said)
            changed = {**header, "__metadata__": {**header["__metadata__"], "ballast.packed": json.dumps(said)}}
            text = json.dumps(changed).encode()
            packed.write_bytes(struct.pack("<Q", len(text)) + text + data)
            _, message = self.run_tool("convert", packed, self.path("x.safetensors"), code=2)
            self.assertRegex(message, r"fast\.safetensors", what)
            self.assertRegex(message, r"layers\.0\.weight|norm|other", what)
        for version in ("2", ""):
            metadata = {**header["__metadata__"], "ballast.packed.version": version}
            text = json.dumps({**header, "__metadata__": metadata}).encode()
            packed.write_bytes(struct.pack("<Q", len(text)) + text + data)
            self.assertIn("this Ballast reads 1", self.run_tool("ls", packed, code=2)[1])

    @staticmethod
    def of_one_value(name, blocks):
        """A packed F32 tensor of 2^17 zeros a block, as few bytes as can say so: planes of one repeated byte."""
        plane = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", 1 << 17) + struct.pack("<I", 1 | 1 << 1 | 1 << 20)[:3] + b"\0"
        block = struct.pack("<BBHI4I", 1, 0, 0, 4, *[len(plane)] * 4) + plane * 4
        head = b"BPT1" + struct.pack("<BBHQ", 4, 17, 0, blocks << 17) + struct.pack("<I", len(block)) * blocks
        blob = head.ljust((len(head) + 63) // 64 * 64, b"\0") + block.ljust((len(block) + 15) // 16 * 16, b"\0") * blocks
        said = {name: {"dtype": "F32", "shape": [blocks << 17], "xxh3": "0" * 16}}
        return safetensors([(name, "U8", [len(blob)], blob)], {"ballast.packed": json.dumps(said), "ballast.packed.version": "1"})

    def test_shards_unpack_together_to_no_more_than_one_file_may(self):
        for shards, code in ((1, 0), (2, 0), (3, 2), (40, 2)):
            for i in range(shards):
                one = self.file(f"s{i}.safetensors", self.of_one_value(f"w{i}", 60))  # 30 MiB
            self.assertLess(os.path.getsize(one), 10_000)
            self.assertIn("w", self.run_json("stats", one)["tensors"][0]["name"])
            index = self.file("m.safetensors.index.json", json.dumps({"weight_map": {f"w{i}": f"s{i}.safetensors" for i in range(shards)}}).encode())
            for command in ("ls", "scan"):
                _, err = self.run_tool(command, index, code=code if command == "ls" else min(code, 1))
            self.assertEqual("expanded-view" in self.run_tool("ls", index, code=code)[1], code != 0)
            self.run_tool("ls", index, "--expansion", "100000")


class Foreign(CliTest):
    def test_what_others_compressed_is_named(self):
        zipnn = self.file("z.safetensors", safetensors([("w", "U8", [4], b"ZN12")], {"znn_compressed_vectors": "{}"}))
        self.assertIn("compressed with ZipNN", self.run_tool("ls", zipnn)[1])
        parts = ("encoded_exponent", "sign_mantissa", "luts", "output_positions", "gaps")
        dfloat = self.file("d.safetensors", safetensors([(f"layers.0.{part}", "U8", [4], b"abcd") for part in parts]))
        self.assertIn("compressed with DFloat11", self.run_tool("ls", dfloat)[1])
        plain = self.file("p.safetensors", safetensors([("luts", "U8", [4], b"abcd")]))
        self.assertNotIn("compressed", self.run_tool("ls", plain)[1])


if __name__ == "__main__":
    unittest.main()
