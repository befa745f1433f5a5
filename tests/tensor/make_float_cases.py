#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes float_cases.txt: what PyTorch (2.7 or newer) makes of single-precision values in its narrower formats.

One case a line, all in hexadecimal: F32 F16 BF16 E5M2 E4M3FN E8M0FNU E4M3FNUZ E5M2FNUZ. The committed file was made by PyTorch 2.11."""
import pathlib
import random
import struct
import sys

import torch

NARROW = [torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e8m0fnu, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


def bits_of(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def interesting():
    """Every half-way point of the 8-bit formats with its neighbours, both signs; the edges of float32 itself; and chance."""
    found = {0, 1, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x00400000, 0x00400001, 0x003FFFFF, 0x00600000, 0x007FFFFF, 0x00800000, 0x00C00000}
    for dtype in NARROW:
        codes = torch.arange(256, dtype=torch.uint8).view(dtype).to(torch.float32)
        values = sorted({abs(v) for v in codes.tolist() if v == v and v != float("inf")})
        if dtype == torch.float8_e8m0fnu:
            values = values[:6] + values[120:134] + values[-6:]
        if values[-1] * 2 < 1e38:
            values.append(2 * values[-1] - values[-2])
        for low, high in zip(values, values[1:]):
            middle = bits_of((low + high) / 2)
            found |= {middle - 1, middle, middle + 1, bits_of(high)}
    rng = random.Random(8)
    found |= {rng.randrange(0x38000000, 0x48000000) for _ in range(500)} | {rng.randrange(0x7F800001) for _ in range(300)}
    # Half-way points of float16 and bfloat16 among them.
    found |= {(rng.randrange(0x33000000, 0x47800000) & ~0x1FFF) | 0x1000 for _ in range(150)}
    found |= {(rng.randrange(0x7F800000) & ~0xFFFF) | 0x8000 for _ in range(150)}
    return sorted(bits | sign for bits in found for sign in (0, 0x80000000))


def main():
    patterns = interesting()
    values = torch.tensor([p - 2**32 if p >= 2**31 else p for p in patterns], dtype=torch.int32).view(torch.float32)
    columns = [values.to(t).view(torch.int16).tolist() for t in (torch.float16, torch.bfloat16)]
    columns += [values.to(t).view(torch.uint8).tolist() for t in NARROW]
    lines = []
    for row in zip(patterns, *columns):
        lines.append(f"{row[0]:08x} " + " ".join(f"{v & 0xFFFF:04x}" for v in row[1:3]) + " " + " ".join(f"{v:02x}" for v in row[3:]))
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("float_cases.txt")
    out.write_text("\n".join(lines) + "\n")
    print(len(lines), "cases,", out.stat().st_size, "bytes, torch", torch.__version__)


if __name__ == "__main__":
    main()
