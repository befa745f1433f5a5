#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes include/ballast/detail/reflect_arms.inc: one structured binding per number of fields."""
import pathlib

MAX_FIELDS = 128
OUT = pathlib.Path(__file__).resolve().parent.parent / "include/ballast/detail/reflect_arms.inc"


def arm(count: int) -> str:
    names = ", ".join(f"a{i}" for i in range(count))
    tie = "BALLAST_DETAIL_TIE" if count <= 16 else "BALLAST_DETAIL_TIE_MANY"
    return f"else if constexpr (n == {count}) {{ auto& [{names}] = object; {tie}({names}) }}\n"


lines = ["// Made by scripts/gen_reflect_arms.py; included in the middle of tie_fields() of reflect.h.\n"]
OUT.write_text("".join(lines + [arm(count) for count in range(1, MAX_FIELDS + 1)]))
