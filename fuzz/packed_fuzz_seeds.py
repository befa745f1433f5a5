#!/usr/bin/env python3
"""Seeds for packed_fuzz: blocks of every kind and split, blobs of one block, a file with a packed tensor, weights."""
import json
import pathlib
import random
import struct
import sys

SPLITS = {0: 1, 1: 2, 2: 2, 3: 4}  # number: bytes of an element
DTYPES = {0: "F8_E4M3", 1: "F16", 2: "BF16", 3: "F32"}


def raw_block(item, count, draw):
    return struct.pack("<BBHI", 0, 0, 0, 0) + draw.randbytes(item * count)


def small_block(item, count, draw):
    """Planes raw, and one as a zstd frame with a raw block or an RLE block in it."""
    planes = [draw.randbytes(count) for _ in range(item)]
    if count > 20:
        head = b"\x28\xb5\x2f\xfd" + (bytes([0x20, count]) if count < 256 else b"\x60" + struct.pack("<H", count - 256))
        planes[-1] = head + struct.pack("<I", 1 | 1 << 1 | count << 3)[:3] + b"\x07"
    sizes = struct.pack(f"<{item}I", *map(len, planes))
    return struct.pack("<BBHI", 1, 0, 0, item) + sizes + b"".join(planes)


def fast_block(item, count, draw):
    codes = [draw.choice((0, 1, 2, 3, 3, 4, 5, 6, 7)) for _ in range(count)]
    masks = b""
    for group in range(0, count, 64):
        for k in range(3):
            masks += struct.pack("<Q", sum((code >> k & 1) << j for j, code in enumerate(codes[group : group + 64])))
    escapes = draw.randbytes(codes.count(7))
    return struct.pack("<BBHI", 2, 110, 0, len(escapes)) + masks + draw.randbytes((item - 1) * count) + escapes


def blob(item, count, block):
    head = struct.pack("<4sBBHQI", b"BPT1", item, 12, 0, count, len(block))
    return head.ljust(64, b"\0") + block.ljust(-(-len(block) // 16) * 16, b"\0")


def file(dtype, count, data):
    said = json.dumps({"w": {"dtype": dtype, "shape": [count], "xxh3": "0" * 16}})
    header = {"__metadata__": {"ballast.packed": said, "ballast.packed.version": "1"}, "w": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1)
    for split, item in SPLITS.items():
        for count in (1, 63, 64, 65, 300):
            kinds = [raw_block, small_block] + ([fast_block] if split >= 2 else [])
            for kind in kinds:
                block = kind(item, count, draw)
                whole = blob(item, count, block)
                name = f"{split}_{count}_{kind.__name__}"
                number = struct.pack("<H", count)
                (folder / f"blob_{name}").write_bytes(bytes([split]) + number + whole)
                (folder / f"block_{name}").write_bytes(bytes([split | 4]) + number + block)
                (folder / f"file_{name}").write_bytes(bytes([split | 12]) + number + file(DTYPES[split], count, whole))
            (folder / f"weights_{split}_{count}").write_bytes(bytes([split | 8]) + b"\0\0" + b"".join(struct.pack("<f", draw.gauss(0, 0.02)) for _ in range(count)))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
