#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes index_cases.txt: random basic index expressions and what NumPy makes of them.

One case a line: SHAPE INDEX RESULT. INDEX items are split by commas: a number, start:stop:step with parts left out, "..." or
"N" (new axis); "-" is no index at all. RESULT is "!" when NumPy raises, else the result's shape ("-" for a scalar) and the FNV-1a hash of its
elements as 64-bit numbers, taken from arange() in SHAPE."""
import pathlib
import random
import struct

import numpy

HUGE = [2**63 - 1, -(2**63 - 1), -(2**63), 2**62, -(2**62), 2**31, -(2**32)]


def fnv(values):
    state = 0xCBF29CE484222325
    for byte in struct.pack(f"<{len(values)}q", *values):
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return state


def number(rng, size):
    return rng.choice(HUGE) if rng.random() < 0.06 else rng.randint(-size - 2, size + 2)


def item(rng, size):
    """An index for a dimension of `size`, as the object NumPy takes and as text."""
    if rng.random() < 0.35:
        value = rng.randint(-size, size - 1) if size and rng.random() < 0.93 else number(rng, size)
        return value, str(value)
    start, stop = (number(rng, size) if rng.random() < 0.65 else None for _ in range(2))
    step = rng.choice([None, None, 1, 1, 2, 3, -1, -1, -2, -3, 0 if rng.random() < 0.1 else 4, rng.choice(HUGE)])
    text = ":".join("" if part is None else str(part) for part in (start, stop, step))
    return slice(start, stop, step), text.removesuffix(":")


def case(rng):
    shape = tuple(rng.choice([0, 1, 2, 3, 3, 4, 5]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4])))
    length = rng.randint(0, len(shape)) if rng.random() < 0.97 else len(shape) + 1
    items = [item(rng, shape[i] if i < len(shape) else 3) for i in range(length)]
    if rng.random() < 0.35:
        # Items behind an ellipsis are counted from the last dimension.
        cut = rng.randint(0, length)
        behind = length - cut
        items[cut:] = [item(rng, shape[len(shape) - behind + i] if length <= len(shape) else 3) for i in range(behind)]
        items.insert(cut, (Ellipsis, "..."))
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        items.insert(rng.randint(0, len(items)), (None, "N"))
    if rng.random() < 0.01:
        items.insert(rng.randint(0, len(items)), (Ellipsis, "..."))
    dims = ",".join(map(str, shape)) or "-"
    index = ",".join(text for _, text in items) or "-"
    array = numpy.arange(int(numpy.prod(shape)), dtype=numpy.int64).reshape(shape)
    try:
        result = numpy.asarray(array[tuple(value for value, _ in items)])
    except (IndexError, ValueError):
        return f"{dims} {index} !"
    return f"{dims} {index} {','.join(map(str, result.shape)) or '-'} {fnv(result.ravel().tolist()):x}"


def main():
    rng = random.Random(20)
    lines = sorted({case(rng) for _ in range(7000)})
    text = "\n".join(lines) + "\n"
    assert len(text) < 200_000, len(text)
    pathlib.Path(__file__).with_name("index_cases.txt").write_text(text)
    print(len(lines), "cases,", len(text), "bytes")


if __name__ == "__main__":
    main()
