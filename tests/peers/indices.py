# SPDX-License-Identifier: Apache-2.0
"""indices.py FRAMEWORK: get_slice(name)[index] for every kind of index, dtype and shape.

ballast.safe_open has one rule for all frameworks: what NumPy makes of the index, or an error where NumPy has one. Under ballast.compat the answer is that
of the published package where it has one that is NumPy's, too; where it has an error, an error or what NumPy makes of it.
"""
import itertools
import json
import pathlib
import sys
import tempfile

import numpy as np

import ballast.compat
import frameworks
from exchange import Direction, said

SHAPES = [(10,), (4, 6), (3, 4, 5), (1, 7), (0, 3), ()]
CODES = ["F32", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "C64"]


def kinds(shape):
    """name → index: what stands in brackets behind an array."""
    rows, rank = (shape[0] if shape else 1), len(shape)
    mask = np.arange(max(rows, 0)) % 2 == 0
    return {
        "number": 0, "negative number": -1, "number beyond": rows + 3, "number below": -rows - 3, "NumPy's number": np.int64(0), "slice": slice(1, 3),
        "slice to the end": slice(1, None), "slice from the end": slice(-2, None), "slice beyond": slice(0, rows + 10), "slice behind": slice(rows + 1, rows + 2),
        "empty slice": slice(2, 1), "step": slice(None, None, 2), "negative step": slice(None, None, -1), "all": slice(None), "ellipsis": Ellipsis, "new axis": None,
        "empty tuple": (), "ellipsis and number": (Ellipsis, 0), "slices": (slice(0, 2), slice(1, 3)), "slice and number": (slice(None), 0),
        "number and new axis": (0, None), "too many": (0,) * (rank + 1), "empty list": [], "list": [0, 2], "list in a tuple": ([0, 1], slice(None)), "lists in a list": [[0, 1], [1, 0]],
        "lists in a tuple": ([0, 1], [1, 0]), "list of truths": [True, False], "truth": True, "array": np.array([0, 2]), "array of bytes": np.array([0, 1], np.uint8),
        "mask": mask, "mask of all": np.ones(shape, bool), "float": 1.0, "text": "a",
    }  # fmt: skip


def answer(way, index):
    """("same form": shape, bits) or ("error", its class)"""
    try:
        return way(index)
    except Exception as error:
        return ("error", said(error))


def main():
    framework = frameworks.FRAMEWORKS[sys.argv[1]]()
    from safetensors import safe_open as published

    carriers = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}
    plain, dropin = Direction("indices as NumPy's", "safe_open().get_slice()[…]"), Direction("indices as safetensors'", "the same under ballast.compat")
    with tempfile.TemporaryDirectory() as name:
        path = str(pathlib.Path(name) / "x.safetensors")
        for code, shape in itertools.product(CODES, SHAPES):
            size = frameworks.DTYPES[code][0]
            raw = bytes((i * 37 + 1) % (2 if code == "BOOL" else 251) for i in range(size * int(np.prod(shape))))
            array = np.frombuffer(raw, carriers[size]).reshape(shape)
            ballast.serialize_file({"a": ballast.TensorSpec(dtype=frameworks.DTYPES[code][1], shape=shape, data_ptr=array.ctypes.data, data_len=len(raw))}, path)

            def by(opener):
                def way(index):
                    with opener(path, framework=framework.name) as file:
                        tensor = file.get_slice("a")[index]
                        return (framework.code(tensor), tuple(tensor.shape), framework.bits(tensor))

                return way

            if answer(by(ballast.safe_open), ())[0] == "error":
                plain.refused[f"no {code}"] += 1
                continue
            for kind, index in kinds(shape).items():
                what = f"{code} {shape} {kind}"
                wanted = answer(lambda i: (code, array[i].shape, array[i].tobytes()), index)
                found = answer(by(ballast.safe_open), index)
                compare(plain, what, found, wanted)
                theirs, compat = answer(by(published), index), answer(by(ballast.compat.safe_open), index)
                if theirs[0] != "error" and theirs != wanted and (compat[0] == "error" or compat == wanted):
                    dropin.refused[f"{kind}: an answer that is not NumPy's"] += 1
                elif theirs[0] == "error" and compat[0] != "error":
                    compare(dropin, what, compat, wanted)
                else:
                    compare(dropin, what, compat, theirs)
    print(json.dumps(plain.line()))
    print(json.dumps(dropin.line()))


def compare(direction, what, found, wanted):
    if (found[0] == "error") == (wanted[0] == "error") and (found[0] == "error" or found == wanted):
        direction.same += 1
    else:
        short = lambda a: a[1] if a[0] == "error" else f"{a[0]} {a[1]}"  # noqa: E731
        direction.different.append(f"{what}: {short(found)} instead of {short(wanted)}")


if __name__ == "__main__":
    main()
