# SPDX-License-Identifier: Apache-2.0
"""Pictures of `ballast view` against NumPy: formats x dtypes x shapes x axes x levels x what a cell shows."""
import itertools
import math
import random
import struct
import sys
import unittest
import warnings

from cli_testing import CliTest, safetensors
from view_testing import View

try:
    import numpy as np
except ImportError:
    print("no NumPy: nothing to compare with")
    sys.exit(77)

NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?", "C64": "<c8"}
SHAPES = [[], [1], [7], [300], [1000], [3, 5], [300, 2], [2, 700], [257, 259], [4, 3, 5], [2, 3, 2, 3, 4], [0], [3, 0]]
FORMATS = ("safetensors", "npz", "pt")
# Bits, and of them exponent, mantissa, bias and what the largest codes are, as the formats' specifications have it; those below a byte lie packed, the lowest bits first.
TINY = {"F4": (4, 2, 1, 1, ""), "F6_E2M3": (6, 2, 3, 1, ""), "F6_E3M2": (6, 3, 2, 3, ""), "F8_E4M3": (8, 4, 3, 7, "one NaN"), "F8_E5M2": (8, 5, 2, 15, "IEEE"), "F8_E8M0": (8, 8, 0, 127, "one NaN")}


def tiny_values(dtype):
    """The value of every code."""
    bits, exponent_bits, mantissa_bits, bias, ends = TINY[dtype]
    values = []
    for code in range(1 << bits):
        sign = -1 if code >> (exponent_bits + mantissa_bits) & 1 else 1
        exponent, mantissa = code >> mantissa_bits & (1 << exponent_bits) - 1, code & (1 << mantissa_bits) - 1
        is_top = exponent == (1 << exponent_bits) - 1
        if ends == "IEEE" and is_top:
            values.append(math.nan if mantissa else sign * math.inf)
        elif ends == "one NaN" and is_top and mantissa == (1 << mantissa_bits) - 1:
            values.append(math.nan)
        elif dtype == "F8_E8M0":  # neither sign nor zero
            values.append(math.ldexp(1, exponent - bias))
        else:
            whole = exponent > 0
            values.append(sign * math.ldexp((mantissa / (1 << mantissa_bits)) + whole, max(exponent, 1) - bias))
    return np.array(values)


def make_tiny(rng, dtype, shape):
    bits = TINY[dtype][0]
    codes = rng.integers(0, 1 << bits, math.prod(shape))
    stream = (codes[:, None] >> np.arange(bits) & 1).astype("<u1").reshape(-1)
    return np.packbits(stream, bitorder="little").tobytes(), tiny_values(dtype)[codes].reshape(shape)


def bfloat16(values):
    """Truncated bits, and the values they stand for."""
    bits = values.astype("<f4").view("<u4") >> 16
    return bits.astype("<u2"), (bits << 16).astype("<u4").view("<f4")


def make(rng, dtype, shape):
    count = math.prod(shape)
    if dtype in ("F64", "F32", "F16", "BF16"):
        values = rng.standard_normal(count) * 10.0 ** rng.integers(-2, 3, count)
        for special in (np.nan, np.inf, -np.inf, 0.0):
            if count > 20:
                values[rng.integers(0, count, 3)] = special
        if dtype == "BF16":
            bits, values = bfloat16(values)
            return bits.tobytes(), values.reshape(shape)
        values = values.astype(NUMPY[dtype])
    elif dtype == "C64":
        values = (rng.standard_normal(count) + 1j * rng.standard_normal(count)).astype("<c8")
    elif dtype == "BOOL":
        values = rng.integers(0, 2, count).astype("?")
    else:
        limits = np.iinfo(NUMPY[dtype])
        values = rng.integers(limits.min, limits.max, count, dtype=NUMPY[dtype], endpoint=True)
    return values.tobytes(), values.reshape(shape)


def plane_of(array, axes, at, fold):
    """Two dimensions of float64, NaN where a folded vector's last row is short; and where there is an element."""
    if np.iscomplexobj(array):
        array = np.abs(array.astype("<c16"))
    array = array.astype("<f8")
    if array.ndim == 0:
        return array.reshape(1, 1), np.ones((1, 1), bool)
    rest = [d for d in range(array.ndim) if d not in axes]
    picture = array.transpose(rest + axes)[tuple(at)]
    if len(axes) == 2:
        return picture, np.ones(picture.shape, bool)
    rows = -(-picture.size // fold) if fold else 0
    flat = np.full(rows * fold, np.nan)
    there = np.zeros(rows * fold, bool)
    flat[: picture.size], there[: picture.size] = picture, True
    return flat.reshape(rows, fold), there.reshape(rows, fold)


def cells_of(picture, there, side, stat):
    """What NumPy says cells of side x side elements show; NaN of those that have no element."""
    margins = [(0, -size % side) for size in picture.shape]
    picture, there = np.pad(picture, margins, constant_values=np.nan), np.pad(there, margins)
    shape = (picture.shape[0] // side, side, picture.shape[1] // side, side)
    blocks, there = (each.reshape(shape).transpose(0, 2, 1, 3).reshape(shape[0], shape[2], side * side) for each in (picture, there))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cells that are all NaN
        if stat == "nan":
            return (np.isnan(blocks) & there).sum(2) / there.sum(2)
        return np.nanmean(blocks, 2) if stat == "mean" else np.nanmax(np.abs(blocks), 2)


class Tiles(CliTest):
    def test_every_cell_is_numpys_fold(self):
        rng = np.random.default_rng(7)
        tensors, arrays = [], {}
        for dtype, shape in itertools.product([*NUMPY, "BF16"], SHAPES):
            name = f"{dtype}.{'x'.join(map(str, shape)) or 'scalar'}"
            data, arrays[name] = make(rng, dtype, shape)
            tensors.append((name, dtype, shape, data))
        for dtype, shape in itertools.product(TINY, SHAPES):
            if math.prod(shape) * TINY[dtype][0] % 8 == 0:
                name = f"{dtype}.{'x'.join(map(str, shape)) or 'scalar'}"
                data, arrays[name] = make_tiny(rng, dtype, shape)
                tensors.append((name, dtype, shape, data))
        path = self.file("all.safetensors", safetensors(tensors))
        compared = 0
        for format_ in FORMATS:
            file = path
            if format_ != "safetensors":
                file = self.path(f"all.{format_}")
                exclude = ["--exclude", r"^(BF16|F\d_|F4)" if format_ == "npz" else r"^(U(16|32|64)|F\d_|F4)"]
                self.run_tool("convert", path, file, *exclude)
            with View(file) as view:
                for row in view.api("files/0/find", limit=5000)["rows"]:
                    with self.subTest(format_, name=row["path"]):
                        compared += self.compare(view, row["n"], arrays[row["path"]])
        print(f"{compared} tiles")
        self.assertGreater(compared, 2000)

    def compare(self, view, n, array):
        """All ways to look at a small tensor; some of them at one of many axes."""
        ways = [[d] for d in range(array.ndim) if array.ndim == 1] + [list(p) for p in itertools.permutations(range(array.ndim), 2)]
        ways = ways or [[]]
        choose = random.Random(n)
        count = 0
        for axes in choose.sample(ways, min(3, len(ways))):
            at = [choose.randrange(array.shape[d]) for d in range(array.ndim) if d not in axes] if array.size else [0] * (array.ndim - len(axes))
            asked = {"axes": ",".join(map(str, axes)), "at": ",".join(map(str, at))}
            plane = view.api(f"files/0/t/{n}/plane", **asked)
            if array.size == 0:
                self.assertEqual(plane["rows"] * plane["cols"], 0)
                continue
            picture, there = plane_of(array, axes, at, plane["fold"])
            self.assertEqual((plane["rows"], plane["cols"]), picture.shape)
            levels = range(plane["levels"])
            self.assertLessEqual(max(picture.shape) / 2 ** (plane["levels"] - 1), 256)
            for level, stat in itertools.product(levels, choose.sample(["absmax", "mean", "value", "nan"], 2)):
                for y, x in itertools.product(range(-(-picture.shape[0] // (256 << level))), range(-(-picture.shape[1] // (256 << level)))):
                    self.compare_tile(view, f"files/0/t/{n}", {**asked, "stat": stat}, (picture, there), level, x, y, stat)
                    count += 1
        return count

    def compare_tile(self, view, path, asked, plane, level, x, y, stat):
        head, rows = view.tile(f"{path}/tile", **asked, level=level, x=x, y=y)
        picture, there = plane
        side = 1 << level
        part = np.s_[y * 256 * side : (y + 1) * 256 * side, x * 256 * side : (x + 1) * 256 * side]
        picture, there = picture[part], there[part]
        self.assertEqual((len(rows), len(rows[0])), (-(-picture.shape[0] // side), -(-picture.shape[1] // side)))
        self.assertEqual((head["version"], head["level"], head["exact"]), (1, level, 1))
        top = float(np.finfo("<f4").max)
        expected = cells_of(picture, there, side, stat)
        ours = np.array(rows, "<f8")
        self.assertEqual(np.isnan(ours).tolist(), np.isnan(expected).tolist(), (stat, level))
        finite = np.isfinite(expected)
        scale = np.abs(expected[finite]).max(initial=0) if stat == "mean" else 0
        if stat == "value" and level == 0:
            np.testing.assert_array_equal(np.sign(ours[finite]), np.sign(picture[finite]))
        sizes = np.abs(ours) if stat == "value" else ours
        if not np.allclose(sizes[finite], np.clip(expected[finite], -top, top), rtol=2e-6, atol=scale * 1e-6):
            self.fail(f"{stat} at level {level}: {ours[:3, :3]} {expected[:3, :3]}")
        self.assertEqual(head["nan"], int(np.isnan(ours).sum()))

    def test_every_cell_of_a_difference_is_numpys_fold(self):
        rng = np.random.default_rng(11)
        pairs = [("F32", "F32"), ("F32", "F16"), ("F64", "F32"), ("I64", "I64"), ("U64", "I32"), ("U8", "BOOL"), ("F16", "I16")]
        both, wholes = ([], []), {}
        for (left, right), shape in itertools.product(pairs, [[7], [300, 2], [257, 259], [4, 3, 5]]):
            name = f"{left}.{right}.{'x'.join(map(str, shape))}"
            (data, a), (other, b) = make(rng, left, shape), make(rng, right, shape)
            both[0].append((name, left, shape, data))
            both[1].append((name, right, shape, other))
            a, b = a.astype(np.longdouble), b.astype(np.longdouble)  # which holds every integer of 64 bits
            with np.errstate(all="ignore"):
                difference = np.where(a == b, 0, a - b)
                wholes[name] = {"ratio": a / b, "sign": np.sign(difference), **dict.fromkeys(("delta", "absmax", "mean", "nan"), difference)}
        compared = 0
        with View(*[self.file(f"{i}.safetensors", safetensors(tensors)) for i, tensors in enumerate(both)]) as view:
            for row in view.diff(sort="file")["rows"]:
                rank = wholes[row["name"]]["delta"].ndim
                axes = [[0]] if rank == 1 else [[0, 1], [1, 0]] if rank == 2 else [[0, 2], [2, 1]]
                for axes, (stat, whole) in itertools.product(axes, wholes[row["name"]].items()):
                    asked = {"axes": ",".join(map(str, axes)), "at": ",".join("1" for _ in range(rank - len(axes)))}
                    with self.subTest(row["name"], stat=stat, axes=axes):
                        compared += self.compare_difference(view, f"diff/t/{row['i']}", asked, whole, axes, stat)
        print(f"{compared} tiles of differences")
        self.assertGreater(compared, 400)

    def compare_difference(self, view, path, asked, whole, axes, stat):
        plane = view.api(f"{path}/plane", **asked)
        picture = plane_of(whole, axes, [1] * (whole.ndim - len(axes)), plane["fold"])
        self.assertEqual((plane["rows"], plane["cols"]), picture[0].shape)
        shown = stat if stat in ("absmax", "mean", "nan") else "value"
        count = 0
        for level in range(plane["levels"]):
            for y, x in itertools.product(*[range(-(-size // (256 << level))) for size in picture[0].shape]):
                self.compare_tile(view, path, {**asked, "stat": stat}, picture, level, x, y, shown)
                count += 1
        return count

    def test_lines_are_numpys_norms(self):
        rng = np.random.default_rng(3)
        array = rng.standard_normal((70, 5000)).astype("<f4")
        with View(self.file("l.safetensors", safetensors([("w", "F32", [70, 5000], array.tobytes())]))) as view:
            for axis, of in itertools.product((0, 1), ("norm", "absmax")):
                content = view.api("files/0/t/0/lines", axis=axis, of=of)
                version, count, exact, step = struct.unpack("<4I", content[:16])
                points = np.frombuffer(content[16:], "<f4")
                whole = np.sqrt((array.astype("<f8") ** 2).sum(1 - axis)) if of == "norm" else np.abs(array).max(1 - axis)
                expected = [whole[i : i + step].max() for i in range(0, len(whole), step)]
                self.assertEqual((version, count, exact), (1, len(points), 1))
                self.assertLessEqual(count, 4096)
                np.testing.assert_allclose(points, expected, rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
