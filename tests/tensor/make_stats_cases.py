#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes stats_cases.txt: what numpy says about values of every kind, computed in float64 (std in long double).

A line: dtype, hex of the bytes, count nan inf zeros min max mean std. Run with /usr/bin/python3 (needs numpy)."""
import numpy as np

rng = np.random.default_rng(7)


def e4m3(code):
    sign, exponent, mantissa = (-1.0 if code & 0x80 else 1.0), code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return np.nan
    return sign * (mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def e5m2(code):
    return np.frombuffer(bytes([0, code]), np.float16)[0].astype(np.float64)


def line(dtype, raw, values):
    v = np.asarray(values, np.float64)
    finite = v[np.isfinite(v)]
    few = [finite.min(), finite.max(), finite.mean(dtype=np.longdouble), finite.std(dtype=np.longdouble)] if finite.size else [np.nan] * 4
    counts = [v.size, int(np.isnan(v).sum()), int(np.isinf(v).sum()), int((v == 0).sum())]
    print(dtype, raw.hex() or "-", *counts, *(repr(float(x)) for x in few))


def plant(values):
    values[[3, 40]] = np.nan
    values[[5, 6, 41]] = np.inf
    values[7] = -np.inf
    values[[0, 9]] = 0.0
    values[10] = -0.0
    return values


for n in (45, 64, 301):
    for dtype, numpy_type in (("F32", np.float32), ("F64", np.float64), ("F16", np.float16)):
        v = plant(rng.normal(0.5, 2.0, n).astype(numpy_type))
        line(dtype, v.tobytes(), v)
    v = plant(rng.normal(-3.0, 0.1, n).astype(np.float32))
    bits = (v.view(np.uint32) >> 16).astype(np.uint16)
    line("BF16", bits.tobytes(), (bits.astype(np.uint32) << 16).view(np.float32))
v = np.float32(1e6) + rng.normal(0, 0.5, 200).astype(np.float32)  # far from zero: naive sums of squares lose it
line("F32", v.tobytes(), v)
v = 1e9 + rng.normal(0, 1e-3, 200)
line("F64", v.tobytes(), v)
codes = np.arange(256, dtype=np.uint8)
line("F8_E4M3", codes.tobytes(), [e4m3(int(c)) for c in codes])
line("F8_E5M2", codes.tobytes(), [e5m2(int(c)) for c in codes])
for dtype, numpy_type in (("I8", np.int8), ("U8", np.uint8), ("I16", np.int16), ("U16", np.uint16), ("I32", np.int32), ("U32", np.uint32)):
    limits = np.iinfo(numpy_type)
    v = rng.integers(limits.min, limits.max, 50, dtype=numpy_type, endpoint=True)
    v[[1, 2]] = [0, limits.max]
    line(dtype, v.tobytes(), v)
line("I64", np.array([-(2**40), 0, 3, 2**50], np.int64).tobytes(), [-(2**40), 0, 3, 2**50])
line("BOOL", bytes([0, 1, 1, 0, 1]), [0, 1, 1, 0, 1])
line("C64", np.array([1 + 2j, complex("nan"), 0j], np.complex64).tobytes(), [1, 2, np.nan, 0, 0, 0])
line("QI8", np.array([-3, 0, 5], np.int8).tobytes(), [-3, 0, 5])
line("F32", np.array([np.nan, np.inf], np.float32).tobytes(), [np.nan, np.inf])
line("F32", b"", [])
big = (np.arange(2_500_000, dtype=np.uint64) * 2654435761 % 4294967296).astype(np.float64) / 65536 - 20000
f = big.astype(np.float32)
print("BIG", "-", f.size, 0, 0, int((f == 0).sum()), *(repr(float(x)) for x in (f.min(), f.max(), f.mean(dtype=np.longdouble), f.std(dtype=np.longdouble))))
