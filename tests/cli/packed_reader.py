# SPDX-License-Identifier: Apache-2.0
"""Packed tensors, read by the words of docs/formats/packed.md: NumPy for the bits, libzstd through ctypes for the frames."""
import ctypes
import json
import struct

import numpy as np

from cli_testing import read_safetensors

ITEM = {"BF16": 2, "F32": 4, "F16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_decompress.restype = ctypes.c_size_t


def frame(data, size):
    out = ctypes.create_string_buffer(size)
    done = zstd.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    assert done == size, done
    return np.frombuffer(out.raw, np.uint8)


def joined(dtype, planes):
    e, *rest = (plane.astype(np.uint32) for plane in planes)
    if dtype.startswith("F8"):
        return e.astype(np.uint8)
    if dtype == "F16":
        return (e << 8 | rest[0]).astype(np.uint16)
    high = (rest[0] & 0x80) << 8 | e << 7 | rest[0] & 0x7F
    return high.astype(np.uint16) if dtype == "BF16" else (high << 16 | rest[1] << 8 | rest[2]).astype(np.uint32)


def exponents(block, b, base, escapes, escaped):
    groups = -(-b // 64)
    masks = np.frombuffer(block, "<u8", 3 * groups, 8).reshape(groups, 3)
    bits = (masks[:, :, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    codes = (bits[:, 0] + 2 * bits[:, 1] + 4 * bits[:, 2]).reshape(-1).astype(np.uint32)
    assert not codes[b:].any()
    codes = codes[:b]
    assert (codes == 7).sum() == escapes
    e = codes + base
    e[codes == 7] = escaped
    return e.astype(np.uint8)


def unpacked_block(dtype, block, b, kinds):
    kind, base, zero, a = struct.unpack_from("<BBHI", block)
    kinds.add(kind)
    assert zero == 0
    n = ITEM[dtype]
    if kind == 0:
        assert len(block) == 8 + b * n
        return block[8:]
    if kind == 1:
        assert a == n
        sizes, at, planes = struct.unpack_from(f"<{n}I", block, 8), 8 + 4 * n, []
        for size in sizes:
            data = block[at : at + size]
            planes.append(np.frombuffer(data, np.uint8) if size == b else frame(data, b))
            at += size
        assert at == len(block)
        return joined(dtype, planes).tobytes()
    assert kind == 2
    at = 8 + 24 * -(-b // 64)
    rest = [np.frombuffer(block, np.uint8, b, at + p * b) for p in range(n - 1)]
    escaped = np.frombuffer(block, np.uint8, -1, at + (n - 1) * b)
    assert len(escaped) == a
    return joined(dtype, [exponents(block, b, base, a, escaped), *rest]).tobytes()


def unpacked(dtype, blob, kinds):
    magic, item, log2, zero, elements = struct.unpack_from("<4sBBHQ", blob)
    assert (magic, item, zero) == (b"BPT1", ITEM[dtype], 0) and 12 <= log2 <= 20
    n = -(-elements // (1 << log2))
    sizes = struct.unpack_from(f"<{n}I", blob, 16)
    at, out = -(-(16 + 4 * n) // 64) * 64, []
    for i, size in enumerate(sizes):
        b = min(1 << log2, elements - (i << log2))
        out.append(unpacked_block(dtype, blob[at : at + size], b, kinds))
        at += -(-size // 16) * 16
    assert at == len(blob)
    return b"".join(out)


def read_packed(path):
    """{name: (dtype, shape, data)}, the names that were packed, and the kinds of blocks that were there."""
    tensors, metadata = read_safetensors(path)
    metadata = metadata or {}
    said, kinds = json.loads(metadata.get("ballast.packed", "{}")), set()
    if said:
        assert metadata["ballast.packed.version"] == "1"
    for name, about in said.items():
        dtype, shape, blob = tensors[name]
        assert dtype == "U8" and shape == [len(blob)]
        tensors[name] = (about["dtype"], about["shape"], unpacked(about["dtype"], blob, kinds))
    return tensors, set(said), kinds
