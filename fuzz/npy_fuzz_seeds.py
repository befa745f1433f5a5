#!/usr/bin/env python3
"""Seeds for npy_fuzz: whole arrays as they are, and headers' texts with the byte that asks for the right length."""
import itertools
import pathlib
import sys

sys.dont_write_bytecode = True
from npz_fuzz_seeds import npy  # noqa: E402

SHAPES = {"()": 1, "(2,)": 2, "(1, 3)": 3, "(0, 4294967296)": 0}
ITEMS = {"<f4": 4, ">i8": 8, "|b1": 1, "<c8": 8, "=u2": 2}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for number, (descr, fortran, shape, version) in enumerate(itertools.product(ITEMS, (False, True), SHAPES, (1, 2, 3))):
        data = bytes(ITEMS[descr] * SHAPES[shape])
        (folder / f"file_{number}").write_bytes(b"\0" + npy(descr, fortran, shape, data, version))
        text = npy(descr, fortran, shape, b"", 1)[10:]
        (folder / f"text_{number}").write_bytes(bytes([len(data) << 2 | (2 if version == 3 else 0) | 1]) + text + data)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
