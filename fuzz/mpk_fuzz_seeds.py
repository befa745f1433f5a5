#!/usr/bin/env python3
"""Seeds for mpk_fuzz: the fixtures, and records with one of everything."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/fixtures/burn"))
from burn_files import mp, param, record, tensor_data  # noqa: E402


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in (ROOT / "tests/fixtures/burn/files").glob("*.mpk*"):
        (folder / path.name).write_bytes(path.read_bytes())
    items = [None, {}, [], 7, {"a": [param(1, "U8", [2], b"ab"), None]}, {"t": tensor_data("F32", [], b"abcd"), "x": -1, "y": 0.5, "z": True, "s": "text"},
             {"w": param(1, {"Bool": "U32"}, [1], b"abcd")}, {"w": param(2, {"F32": None}, [0], b"")}]
    for number, item in enumerate(items):
        (folder / f"item_{number}").write_bytes(mp(record(item)))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
