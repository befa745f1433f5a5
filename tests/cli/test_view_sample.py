# SPDX-License-Identifier: Apache-2.0
"""What `ballast view` says of a tensor from a sample, against all its values as NumPy has them, for twenty distributions."""
import json
import struct
import sys
import unittest

from cli_testing import CliTest
from view_testing import View

try:
    import numpy as np
except ImportError:
    print("no NumPy: nothing to compare with")
    sys.exit(77)

ROWS, COLS = 2200, 2000
COUNT = ROWS * COLS  # 17.6 MB: more than is read whole
# As docs/view.md has it, in shares of the values: three standard errors of a million values, or of 1,024 pages whose values are all alike.
UNORDERED, ORDERED = 0.002, 0.05
NARROW = 2.0**-8  # F32 is counted by its upper 16 bits


def unordered(rng):
    normal = rng.standard_normal(COUNT, dtype="<f4")
    even = rng.random(COUNT, dtype="<f4")
    yield "normal", normal
    yield "even", even * 2 - 1
    yield "exponential", -np.log1p(-even)
    yield "lognormal", np.exp(normal * 3)
    yield "Cauchy", np.tan(np.pi * (even - np.float32(0.5)))
    yield "Laplace", np.sign(even - np.float32(0.5)) * -np.log1p(-np.abs(2 * even - 1) * np.float32(0.999999))
    yield "two humps", normal + np.where(even < 0.3, np.float32(-20), np.float32(5))
    yield "one value", np.full(COUNT, 0.25, "<f4")
    yield "mostly zero", np.where(even < 0.99, np.float32(0), normal)
    yield "whole numbers", np.floor(even * 7) - 3
    yield "denormal", normal * np.float32(1e-40)
    yield "huge", normal * np.float32(1e37)
    holes = normal.copy()
    holes[even < 0.01], holes[even > 0.99], holes[(even > 0.5) & (even < 0.51)] = np.nan, np.inf, -np.inf
    yield "not all finite", holes


def ordered(rng):
    normal = rng.standard_normal(COUNT, dtype="<f4")
    rising = np.sort(normal)
    yield "rising", rising
    yield "falling", rising[::-1]
    yield "rows of many sizes", (normal.reshape(ROWS, COLS) * np.exp(3 * rng.standard_normal((ROWS, 1), dtype="<f4"))).reshape(-1)
    yield "columns of many sizes", (normal.reshape(ROWS, COLS) * np.exp(3 * rng.standard_normal((1, COLS), dtype="<f4"))).reshape(-1)
    yield "a wave", np.sin(np.arange(COUNT, dtype="<f4") / 997)
    yield "every other page zero", np.where(np.arange(COUNT) // 1024 % 2 == 0, np.float32(0), normal)
    yield "half of it zero", np.where(np.arange(COUNT) < COUNT // 2, np.float32(0), normal)


def write(path, arrays):
    header = {name: {"dtype": "F32", "shape": [ROWS, COLS], "data_offsets": [i * COUNT * 4, (i + 1) * COUNT * 4]} for i, name in enumerate(arrays)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.astype("<f4").tobytes())
    return path


class Sample(CliTest):
    def test_the_quantiles_of_a_sample_are_as_near_as_the_documents_say_for_twenty_distributions(self):
        rng = np.random.default_rng(24)
        limits = {}
        arrays = {}
        for limit, made in ((UNORDERED, unordered), (ORDERED, ordered)):
            for name, array in made(rng):
                arrays[name], limits[name] = array, limit
        self.assertEqual(len(arrays), 20)
        farthest = dict.fromkeys((UNORDERED, ORDERED), 0)
        with View(write(self.path("s.safetensors"), arrays)) as view:
            for row in view.api("files/0/find")["rows"]:
                summary = view.api(f"files/0/t/{row['n']}/summary")
                self.assertEqual((summary["exact"], summary["sampled"], summary["elements"]), (False, 1 << 20, COUNT))
                limit, array = limits[row["path"]], arrays[row["path"]]
                finite = array[np.isfinite(array)]
                for share, text in summary["quantiles"][1:-1]:
                    off = self.distance(finite, share, float(text))
                    farthest[limit] = max(farthest[limit], off)
                    self.assertLessEqual(off, limit, (row["path"], share, text))
        print("farthest: " + ", ".join(f"{off:.4f} of at most {limit}" for limit, off in farthest.items()))

    @staticmethod
    def distance(finite, share, value):
        """How far the shares of values below and up to it are from the one that was asked for; 0 where it lies between them."""
        width = abs(value) * NARROW + 2.0**-133
        below, up_to = np.count_nonzero(finite < value - width) / len(finite), np.count_nonzero(finite <= value + width) / len(finite)
        return max(below - share, share - up_to, 0)


if __name__ == "__main__":
    unittest.main()
