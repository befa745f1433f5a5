#!/usr/bin/env python3
"""Seeds for safetensors_fuzz: every conformance case, whole (first byte 0) and as a header whose length the target puts before it (first byte odd)."""
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for line in (ROOT / "tests/formats/safetensors/cases.tsv").read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if line.startswith("#") or fields[0] == "case":
            continue
        content = bytes.fromhex(fields[1])
        (folder / fields[0]).write_bytes(b"\0" + content)
        length = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else 1 << 63
        tail = len(content) - 8 - length
        if 0 <= tail < 32:
            (folder / (fields[0] + "_header")).write_bytes(bytes([tail << 3 | 1]) + content[8:])
            (folder / (fields[0] + "_disk")).write_bytes(bytes([tail << 3 | 7]) + content[8:])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
