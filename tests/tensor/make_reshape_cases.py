#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes reshape_cases.txt: which reshapes of which views NumPy does without a copy.

One case a line: SHAPE ORDER STEPS TARGET VERDICT. The view is arange() in SHAPE, its dimensions permuted by ORDER, then sliced with STEPS; TARGET
may hold a -1. VERDICT: "view" or "copy" and the resulting shape, or "!" when NumPy raises. "-" is an empty list."""
import pathlib
import random

import numpy


def text(numbers):
    return ",".join(map(str, numbers)) or "-"


def factors(rng, total, rank):
    """A random shape of `rank` dimensions that holds `total` elements."""
    dims = [1] * rank
    if rank == 0:
        return dims
    if total == 0:
        dims = [rng.choice([1, 2, 3]) for _ in dims]
        dims[rng.randrange(rank)] = 0
        return dims
    prime = 2
    while total > 1:
        while total % prime == 0:
            dims[rng.randrange(rank)] *= prime
            total //= prime
        prime += 1
    return dims


def case(rng):
    shape = [rng.choice([1, 2, 2, 3, 4, 4, 6]) if rng.random() < 0.97 else 0 for _ in range(rng.randint(0, 4))]
    order = list(range(len(shape)))
    if rng.random() < 0.5:
        rng.shuffle(order)
    steps = [rng.choice([1, 1, 1, 1, 2, -1]) for _ in shape]
    array = numpy.arange(int(numpy.prod(shape))).reshape(shape).transpose(order)[(*(slice(None, None, s) for s in steps), Ellipsis)]
    target = factors(rng, array.size, rng.randint(0 if array.size == 1 else 1, 5))
    if target and rng.random() < 0.4:
        target[rng.randrange(len(target))] = -1
    if target and rng.random() < 0.05:
        target[rng.randrange(len(target))] = rng.choice([-1, 5, 0, -2])
    line = f"{text(shape)} {text(order)} {text(steps)} {text(target)}"
    if min(target, default=0) < -1:
        return line + " !"  # NumPy takes any one negative number for -1; nobody should
    try:
        result = array.reshape(target)
    except ValueError:
        return line + " !"
    shared = array.size == 0 or numpy.shares_memory(result, array)
    return f"{line} {'view' if shared else 'copy'} {text(result.shape)}"


def main():
    rng = random.Random(21)
    lines = sorted({case(rng) for _ in range(1100)})
    pathlib.Path(__file__).with_name("reshape_cases.txt").write_text("\n".join(lines) + "\n")
    print(len(lines), "cases")


if __name__ == "__main__":
    main()
