# SPDX-License-Identifier: Apache-2.0
"""ballast stats --quantiles and --histogram against NumPy: 20 distributions in every dtype it has."""

import unittest

from cli_testing import CliTest, floats, safetensors

try:
    import numpy as np
except ImportError:
    np = None

SHARES = (0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.501, 0.75, 0.9, 0.99, 0.999, 1)
CODES = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?"}
EXACT = {"F16", "BF16", "I16", "U16", "I8", "U8", "BOOL"}


def distributions(count):
    random = np.random.default_rng(7)
    normal = random.normal(size=count)
    yield "normal", normal
    yield "weights", normal * 0.02
    yield "tiny", normal * 1e-30
    yield "huge", normal * 1e30
    yield "far from zero", normal + 1000
    yield "negative", -np.abs(normal) - 0.5
    yield "uniform", random.uniform(-1, 1, count)
    yield "uniform integers", random.integers(-300, 300, count).astype("f8")
    yield "exponential", random.exponential(size=count)
    yield "laplace", random.laplace(size=count)
    yield "cauchy", random.standard_cauchy(count)
    yield "pareto", random.pareto(1, count)
    yield "lognormal", random.lognormal(0, 5, count)
    yield "two humps", np.where(random.random(count) < 0.3, normal - 8, normal + 8)
    yield "mostly zero", np.where(random.random(count) < 0.9, 0, normal)
    yield "one outlier", np.where(np.arange(count) == count // 2, 1e4, normal)
    yield "one value", np.full(count, 3.0)
    yield "two values", np.where(random.random(count) < 0.5, -1.0, 2.0)
    yield "with NaN and infinities", np.where(random.random(count) < 0.1, np.nan, np.where(random.random(count) < 0.1, -np.inf, normal))
    yield "denormals and both zeros", np.where(random.random(count) < 0.5, normal * 1e-42, np.where(random.random(count) < 0.5, -0.0, 0.0))


def as_bf16(values):
    """The upper half of the floats: what is there, not rounded."""
    return (values.astype("f4").view("u4") >> 16).astype("u2")


def bf16_values(bits):
    return (bits.astype("u4") << 16).view("f4")


class Quantiles(CliTest):
    def cases(self, count):
        for name, values in distributions(count):
            for code, dtype in CODES.items():
                if dtype[0] in "iu":
                    limits = np.iinfo(dtype)
                    stored = np.clip(np.nan_to_num(values * 10), float(limits.min) / 2, float(limits.max) / 2).astype(dtype)
                else:
                    with np.errstate(over="ignore"):
                        stored = values.astype(dtype)
                yield f"{name} {code}", code, stored, stored
            bits = as_bf16(values)
            yield f"{name} BF16", "BF16", bits, bf16_values(bits)

    def check(self, got, code, values):
        finite = values[np.isfinite(values)].astype("f8") if values.dtype.kind == "f" else values
        if finite.size == 0:
            return self.assertTrue(all(value is None for _, value in got["quantiles"]))
        self.assertEqual([share for share, _ in got["quantiles"]], list(SHARES))
        for share, value in got["quantiles"]:
            right = float(np.quantile(finite, share, method="inverted_cdf"))
            if code in EXACT or share in (0, 1):
                self.assertEqual(value, right)
            else:
                self.assertLessEqual(abs(value - right), max(abs(right) * 2.0**-8, 2.0**-133 if code == "F32" else 0))
        edges, counts = got["histogram"]["edges"], got["histogram"]["counts"]
        self.assertEqual((edges[0], edges[-1], len(edges), sum(counts)), (float(finite.min()), float(finite.max()), len(counts) + 1, finite.size))
        self.assertEqual(len(counts), 256 if edges[0] != edges[-1] else 1)
        self.assertTrue(all(a <= b for a, b in zip(edges, edges[1:])))
        if code in EXACT and len(counts) == 256:
            places = np.minimum(np.searchsorted(edges, finite.astype("f8"), side="right") - 1, 255)
            self.assertEqual(counts, np.bincount(places, minlength=256).tolist())
        elif len(counts) == 256:  # a bucket's width of leeway
            below = np.concatenate([[0], np.cumsum(counts)])
            for edge, many in list(zip(edges, below))[8:-8:16]:
                slack = abs(edge) * 2.0**-7 + 2.0**-133
                self.assertLessEqual(int((finite < edge - slack).sum()), many)
                self.assertLessEqual(many, int((finite <= edge + slack).sum()))

    @unittest.skipIf(np is None, "no NumPy")
    def test_are_numpys_in_every_distribution_and_dtype(self):
        for count in (1, 2, 1001, 30000):
            names, tensors, right = [], [], {}
            for name, code, stored, values in self.cases(count):
                names.append(name)
                tensors.append((name, code, list(stored.shape), stored.tobytes()))
                right[name] = (code, values)
            path = self.file("many.safetensors", safetensors(tensors))
            result = self.run_json("stats", path, "--histogram", "--quantiles=" + ",".join(map(str, SHARES)))["tensors"]
            plain = self.run_json("stats", path)["tensors"]
            self.assertEqual(len(result), 20 * 13)
            for got, without in zip(result, plain):
                with self.subTest(got["name"], count=count):
                    self.check(got, *right[got["name"]])
                    self.assertEqual({key: got[key] for key in without}, without)

    def test_are_asked_for_with_or_without_a_list(self):
        path = self.file("s.safetensors", safetensors([("w", "F32", [5], floats(4, 1, 2, 3, 0))]))
        (w,) = self.run_json("stats", path, "--quantiles")["tensors"]
        self.assertEqual([share for share, _ in w["quantiles"]], [0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999])
        (w,) = self.run_json("stats", "--quantiles", path)["tensors"]
        self.assertIn("quantiles", w)
        out, _ = self.run_tool("stats", path, "--quantiles=0.5")
        self.assertIn("50%", out)
        for wrong in ("x", "1.5", "-0.1", "nan", "0.5,", ",0.5", "0.5;0.6"):
            _, err = self.run_tool("stats", path, "--quantiles=" + wrong, code=2)
            self.assertIn("is no number from 0 to 1", err)

    def test_the_drawing_is_on_a_terminal_alone(self):
        path = self.file("s.safetensors", safetensors([("w", "F32", [17], floats(*range(17)))]))
        seen, code = self.run_on_terminal("stats", path, columns=160)
        self.assertEqual(code, 0)
        self.assertIn("█", seen)
        out, _ = self.run_tool("stats", path)
        self.assertNotIn("█", out)


if __name__ == "__main__":
    unittest.main()
