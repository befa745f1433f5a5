# SPDX-License-Identifier: Apache-2.0
"""ballast extract: one tensor, or a slice of it, against NumPy."""
import os
import random
import struct
import unittest

from cli_testing import SOURCE, CliTest, floats, quantized, read_safetensors, safetensors

try:
    import numpy
except ImportError:
    numpy = None


def part_of_index(draw, size):
    bound = lambda: draw.choice(["", str(draw.randint(-size - 2, size + 2))])
    kind = draw.randrange(6)
    if kind == 0 and size > 0:
        return str(draw.randint(-size, size - 1))
    if kind == 1:
        return "None"
    if kind == 2:
        return f"{bound()}:{bound()}"
    return f"{bound()}:{bound()}:{draw.choice(['', '1', '2', '3', '-1', '-2', '7', '-9'])}"


def index_of(draw, shape):
    """A random index that NumPy takes for an array of this shape, as text."""
    parts, dims = [], list(shape)[: draw.randint(0, len(shape))]
    for size in dims:
        parts.append(part_of_index(draw, size))
        while parts[-1] == "None":
            parts.append(part_of_index(draw, size))
    if draw.random() < 0.3 or not parts:
        parts.insert(draw.randint(0, len(parts)) if len(dims) == len(shape) else len(parts), "...")
    return draw.choice([",", ", ", " , "]).join(parts)


@unittest.skipIf(numpy is None, "needs numpy")
class Slices(CliTest):
    def test_a_slice_is_numpys(self):
        draw, seen = random.Random(7), set()
        shapes = {"a.weight": (5, 7), "cube": (3, 1, 4), "line": (11,), "empty": (0, 3), "one": ()}
        arrays = {name: numpy.array([draw.uniform(-9, 9) for _ in range(int(numpy.prod(shape)))], "<f4").reshape(shape) for name, shape in shapes.items()}
        source = self.file("s.safetensors", safetensors([(name, "F32", list(array.shape), array.tobytes()) for name, array in arrays.items()]))
        for turn in range(60):
            name = draw.choice(list(arrays))
            index = index_of(draw, arrays[name].shape)
            wanted = eval(f"array[{index}]", {"array": arrays[name]})
            out = self.path("x.npy")
            self.run_tool("extract", source, f"{name}[{index}]", "-o", out, "-f")
            found = numpy.load(out)
            self.assertEqual((found.dtype, found.shape, found.tobytes()), (numpy.dtype("<f4"), wanted.shape, wanted.tobytes()), f"{name}[{index}]")
            seen.add(wanted.shape)
        self.assertGreater(len(seen), 12)

    def test_a_whole_tensor_of_every_dtype_numpy_has(self):
        dtypes = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "U16": "<u2", "BOOL": "?"}
        arrays = {code: numpy.arange(6).reshape(2, 3).astype(dtype) for code, dtype in dtypes.items()}
        source = self.file("s.safetensors", safetensors([(code, code, [2, 3], array.tobytes()) for code, array in arrays.items()]))
        for code, array in arrays.items():
            self.run_tool("extract", source, code, "-o", self.path(f"{code}.npy"))
            found = numpy.load(self.path(f"{code}.npy"))
            self.assertEqual((found.dtype, found.tolist()), (array.dtype, array.tolist()), code)

    def test_what_python_would_not_take_is_refused(self):
        source = self.small()
        for index in ("", " ", "a", "1.5", "0,,1", "1:2:3:4", "0x1", "::0", "2", "-3", "0,0,0", "...,...", "1 2", "99999999999999999999", "True"):
            self.run_tool("extract", source, f"b.weight[{index}]", "-o", self.path("x.npy"), code=2)
        self.assertEqual(os.listdir(self.folder), ["small.safetensors"])


class Files(CliTest):
    def test_the_extension_says_the_format_and_the_name_stays(self):
        source = self.small()
        for out in ("x.safetensors", "x.record", "x.pt", "x.npz", "x.npy"):
            self.run_tool("extract", source, "b.weight[1:]", "-o", self.path(out))
            listed = self.run_json("ls", self.path(out))["tensors"]
            self.assertEqual([(t["dtype"], t["shape"]) for t in listed], [("F32", [1, 2])])
            if out != "x.npy":
                self.assertEqual(listed[0]["name"], "b.weight")
        self.assertEqual(read_safetensors(self.path("x.safetensors"))[0]["b.weight"][2], floats(3, 4))

    def test_an_output_is_kept_unless_told_and_never_half_there(self):
        source, there = self.small(), self.file("there.npy", b"precious")
        self.assertIn("is there already; -f overwrites it", self.run_tool("extract", source, "b.bias", "-o", there, code=2)[1])
        self.assertEqual((self.folder / "there.npy").read_bytes(), b"precious")
        self.run_tool("extract", source, "absent", "-o", there, "-f", code=2)
        self.assertEqual((self.folder / "there.npy").read_bytes(), b"precious")
        self.run_tool("extract", source, "b.bias", "-o", there, "-f")
        self.assertNotEqual((self.folder / "there.npy").read_bytes(), b"precious")
        self.run_tool("extract", source, "b.bias", "-o", source, "-f", code=2)
        self.run_tool("extract", source, "b.bias", "-o", self.path("x.unknown"), code=2)
        self.assertEqual(sorted(os.listdir(self.folder)), ["small.safetensors", "there.npy"])

    def test_whose_numbers_they_are_is_said_or_noted(self):
        plain, burn = self.folder / "sq.safetensors", self.folder / "sq.bpk"
        plain.write_bytes(safetensors([("fc.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("fc.bias", "F32", [2], floats(0, 0))]))
        self.run_tool("convert", plain, burn)
        turned = floats(1, 3, 2, 4)
        for extension in ("safetensors", "record", "bpk", "mpk"):
            out = self.folder / f"one.{extension}"
            self.run_tool("extract", burn, "fc.weight", "-o", out)
            back = self.folder / f"back-{extension}.safetensors"
            self.run_tool("convert", out, back, "--layout", "pytorch", "--layers", "^fc$=linear")
            self.assertEqual(read_safetensors(back)[0]["fc.weight"][2], floats(1, 2, 3, 4), extension)
        for extension in ("npy", "npz"):
            out = self.folder / f"one.{extension}"
            notes = self.run_tool("extract", burn, "fc.weight", "-o", out)[1]
            self.assertIn("has no place to say that the numbers have the layout burn", notes, extension)
            self.assertIn(turned, out.read_bytes(), extension)
        self.assertEqual(self.run_tool("extract", plain, "fc.weight", "-o", self.folder / "plain.npy")[1], "")
        self.assertIsNone(read_safetensors(self.run_tool("extract", plain, "fc.bias", "-o", self.folder / "b.safetensors") and self.folder / "b.safetensors")[1])

    def test_a_safetensors_file_made_from_torch_says_so(self):
        out = self.folder / "o.safetensors"
        self.run_tool("extract", SOURCE / "examples/data/net.pt", "state_dict.4.bias", "-o", out)
        self.assertEqual(read_safetensors(out)[1], {"format": "pt"})

    def test_names_with_brackets_come_first(self):
        source = self.file("s.safetensors", safetensors([("a[0]", "F32", [2], floats(1, 2)), ("a", "F32", [1], floats(3))]))
        for name, value in (("a[0]", [2]), ("a[0][0]", []), ("a", [1])):
            self.assertEqual(self.run_json("extract", source, name, "-o", self.path("x.npy"), "-f")["output"]["shape"], value)

    def test_a_name_that_is_none_gets_a_suggestion(self):
        self.assertIn('did you mean "b.weight"?', self.run_tool("extract", self.small(), "b.wieght", "-o", self.path("x.npy"), code=2)[1])

    def test_quantized_weights_are_the_numbers_they_stand_for(self):
        source = self.file("q.safetensors", quantized())
        self.run_tool("extract", source, "q", "-o", self.path("q2.safetensors"))
        self.assertEqual(read_safetensors(self.path("q2.safetensors"))[0], {"q": ("F32", [2, 2], floats(0.5, -1, 6, 254))})
        self.run_tool("extract", source, "q_scale", "-o", self.path("s.safetensors"))
        self.assertEqual(read_safetensors(self.path("s.safetensors"))[0]["q_scale"][2], floats(0.5, 2))

    def test_a_dtype_casts_and_overflow_is_said(self):
        data = struct.pack("<3H", 0x3F80, 0x4000, 0x7F00)  # 1, 2 and 1.7e38
        source = self.file("b.safetensors", safetensors([("bn.running_mean", "BF16", [3], data)]))
        self.assertIn("BF16", self.run_tool("extract", source, "bn.running_mean", "-o", self.path("x.npy"), code=2)[1])
        self.run_tool("extract", source, "bn.running_mean[:2]", "-o", self.path("x.npy"), "--dtype", "f32")
        out = self.run_json("extract", source, "bn.running_mean", "-o", self.path("h.npy"), "--dtype", "f16", code=1)
        self.assertEqual(out["output"]["dtype"], "F16")


if __name__ == "__main__":
    unittest.main()
