#!/usr/bin/env python3
"""Seeds for bpk_fuzz: metadata of small packs, behind the byte that asks for a header, and whole packs."""
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/fixtures/burn"))
from burn_files import burnpack  # noqa: E402


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    packs = [burnpack([]), burnpack([("a", "U8", [4], b"abcd", 1), ("b", "F32", [1, 1], b"abcd", None)], {"k": "v"}, {"i": {"Int": -5}, "f": {"Float": 0.1}, "b": {"Bool": False}}),
             burnpack([("a", {"Bool": "Native"}, [1], b"\1", 2**63), ("e", "I64", [0], b"", None)]), burnpack([("a", "BF16", [2], b"abcd", None)], align=False)]
    for number, pack in enumerate(packs):
        (size,) = struct.unpack("<I", pack[6:10])
        (folder / f"metadata_{number}").write_bytes(b"\1" + pack[10 : 10 + size])
        (folder / f"pack_{number}").write_bytes(b"\0" + pack)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
