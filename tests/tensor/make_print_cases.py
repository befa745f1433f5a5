#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes print_cases.txt: what torch prints, over the product of dtype, shape and kind of values.

A line: dtype, shape ("-" without dimensions), hex of a few elements, repr(tensor) with \\n for its line breaks. Element i of the tensor is
element i * 7 % count of those few. Run with /usr/bin/python3 (needs torch 1.13)."""
import math
import sys

import torch

nan, inf = math.nan, math.inf
FLOATS = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16"}
INTEGERS = {torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8"}
COMPLEX = {torch.complex64: "C64", torch.complex128: "C128"}
SHAPES = [[], [0], [0, 3], [2, 0], [1], [2], [7], [3, 4], [1, 1, 1, 7], [2, 3, 4], [2, 1, 3, 2], [40]]
LONG = [[1001], [30, 40], [8, 2, 70], [2, 600], [600, 2], [7, 1, 2, 90], [7, 7, 21]]
FLOAT_KINDS = {
    "whole": [1, 2, -3, 40, 0], "zeros": [0.0], "negative zero": [-0.0, 0.0], "fractions": [0.5, -1.25, 3.14159, 100.125, 0],
    "ratio 1000": [1.5, 1500.0], "ratio above": [1.5, 1501.5], "small": [1e-4, 0.01], "smaller": [0.99e-4, 2e-5, 0], "large whole": [1e8, 2e8 + 64, 3],
    "large": [4e4, -6e4, 8.0], "special": [nan, inf, -inf], "special and whole": [1.0, nan, -inf, 200.0], "special and fractions": [0.1, inf, nan, -22.5],
    "special and scientific": [1e-6, 3.0, nan, inf, -inf, 0.0, -7.5e3], "one": [-123.456], "widest": [-9999.99, 0.125 + 10],
    "rounds up": [9.99996, 0.00012345, 0.1], "denormal": [6e-8, 1.0], "huge": [3e38, 1.0, 1e-38],
}
INTEGER_KINDS = {"few": [1, 2, 3, 0], "mixed widths": [1, 100, -20, 7], "limits": None, "zeros": [0]}
COMPLEX_KINDS = {"whole": [1 + 2j, -3 - 4j, 0j], "fractions": [0.5 - 1.25j, 10j, 3 + 0j], "special": [complex(nan, 1), complex(inf, -inf), 1 + 1j],
                 "scientific": [1e-6 + 1e6j, 1 - 1j, 0j], "negative zero": [complex(-0.0, -0.0), 1 + 1j]}


def line(code, shape, few):
    count = math.prod(shape)
    tensor = few[torch.arange(count) * 7 % len(few)].reshape(shape)
    raw = few.view(torch.int16) if few.dtype == torch.bfloat16 else few
    print(code, ",".join(map(str, shape)) or "-", raw.numpy().tobytes().hex(), repr(tensor).replace("\n", "\\n"), sep="\t")


def rows():
    for dtype, code in FLOATS.items():
        for kind in FLOAT_KINDS.values():
            yield code, torch.tensor(kind, dtype=dtype)
    for dtype, code in INTEGERS.items():
        limits = torch.iinfo(dtype)
        for kind in INTEGER_KINDS.values():
            values = kind or [limits.min, limits.max, 0]
            yield code, torch.tensor([abs(v) for v in values] if dtype == torch.uint8 else values, dtype=dtype)
    for kind in ([True, False, False], [True], [False]):
        yield "BOOL", torch.tensor(kind)
    for dtype, code in COMPLEX.items():
        for kind in COMPLEX_KINDS.values():
            yield code, torch.tensor(kind, dtype=dtype)


sys.stdout.reconfigure(newline="\n")
for number, (code, few) in enumerate(rows()):
    for shape in SHAPES:
        line(code, shape, few)
    for place in (0, 3):  # long ones in turn, or the file would be a book
        line(code, LONG[(number + place) % len(LONG)], few)
    if number % 16 == 3:
        line(code, [1000], few)  # the longest that is not shortened
