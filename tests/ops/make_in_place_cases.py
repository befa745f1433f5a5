#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes in_place_cases.txt: what torch's +=, -=, *=, /= do, over all pairs of dtypes, and with numbers.

A line: operator, dtype of a, dtype of b ("int", "float": a number), a's values, b's, and a's afterwards or "refused".
F16 and BF16 are computed in F32 and rounded once. Run with /usr/bin/python3 (needs torch 1.13)."""
import operator

import torch

CODES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
         torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
OPERATORS = {"+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv}
A = [3, 100, 1, 0]
B = [2, 60, 1, 5]


def values(dtype, numbers):
    return torch.tensor(numbers).to(dtype)


def words(tensor):
    return ",".join(repr(float(x)) for x in tensor) if tensor.dtype.is_floating_point else ",".join(str(int(x)) for x in tensor)


def line(name, a, b, code):
    before = words(a)
    other = words(b) if torch.is_tensor(b) else repr(b)
    try:
        after = words(OPERATORS[name](a, b))
    except RuntimeError as error:
        if "not implemented for" in str(error):
            return
        after = "refused"
    print(name, CODES[a.dtype], code, before, other, after)


for name in OPERATORS:
    for dtype in CODES:
        for other, code in CODES.items():
            line(name, values(dtype, A), values(other, B), code)
        line(name, values(dtype, A), 3, "int")
        line(name, values(dtype, A), 0.5, "float")
