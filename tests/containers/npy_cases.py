# SPDX-License-Identifier: Apache-2.0
"""Headers of NumPy's arrays by grammar, and NumPy as their other reader."""
import io
import math
import struct

import numpy as np

DESCR = ["<f4", ">f4", "=f4", "|f4", "f4", "<f2", "<f8", "|b1", "?", "<i8", "|u1", "|i1", ">i2", "<u2", "<u4", "<u8", "<c8", ">c16", "|O", "<U4", "S3", "|V2", "<M8[s]", "<f3", "", "<", "float32", "single", "d", "b", "B", "h", "<b1", ">b1",
         "bool", "int", "f", "e", "<f16", "l", "i", "u1", ">u1"]
DIMS = ["0", "1", "2", "3", "7", "-1", "00", "01", "0x2", "1_0", "2L", "True", "2.0", "9223372036854775807", "9223372036854775808", "4611686018427387904", "4294967296", "3037000500", "+2", " 2 "]
KEYS = ["descr", "fortran_order", "shape"]


def quoted(rng, text):
    return rng.choice(["'%s'", "'%s'", "'%s'", '"%s"', "'%s'", "u'%s'", "b'%s'", "r'%s'", "'''%s'''", "('%s')"] if rng.random() < 0.2 else ["'%s'"]) % text


def shape(rng):
    dims = [rng.choice(DIMS if rng.random() < 0.15 else DIMS[:5]) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.1:
        dims = [rng.choice(["0", "4611686018427387904", "4294967296", "9223372036854775807"]) for _ in range(rng.randint(2, 5))]
    inside = ", ".join(dims)
    return rng.choice(["(%s)", "(%s,)", "[%s]", "%s", "(%s", "(%s,,)"] if rng.random() < 0.1 else ["(%s,)" if len(dims) == 1 else "(%s)"]) % inside


def header(rng):
    values = {"descr": quoted(rng, rng.choice(DESCR if rng.random() < 0.3 else DESCR[:1] + DESCR[5:8] + DESCR[9:18])) if rng.random() < 0.97 else "[('a', '<f4')]", "fortran_order": rng.choice(["True", "False"] * 6 + ["0", "1", "None", "'True'", "Truex"]), "shape": shape(rng)}
    keys = KEYS[:]
    if rng.random() < 0.1:
        rng.shuffle(keys)
    if rng.random() < 0.03:
        keys.append(rng.choice(KEYS + ["extra"]))
    if rng.random() < 0.03:
        keys.pop()
    members = [f"{quoted(rng, key)}{rng.choice([':', ': ', ' : '])}{values.get(key, '1')}" for key in keys]
    text = "{" + ", ".join(members) + rng.choice([", }"] * 8 + ["}", ",}", ",,}", "", "} ", "}#x", "} or {}"])
    if rng.random() < 0.03:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(["\n", "\t", "\\", "#", "\0", "\x0c", "é", "'", "(", " "]) + text[at:]
    return text


def make(rng):
    version = rng.choice([1, 1, 1, 2, 3, 0, 4]) if rng.random() < 0.3 else 1
    text = header(rng).encode("utf-8" if version == 3 else "latin1") + rng.choice([b"\n", b" " * 20 + b"\n", b"", b" \t"])
    length = len(text) + (rng.choice([-1, 1, 5]) if rng.random() < 0.02 else 0)
    data = b"\x93NUMPY" + bytes([version, 0 if rng.random() < 0.99 else 1]) + struct.pack("<H" if version < 2 else "<I", length) + text
    try:
        dims, _, dtype, _ = by_numpy(data)
        needed = math.prod(dims) * dtype.itemsize
        data += bytes(needed if needed < 4096 else 8)
    except Exception:
        data += bytes(24)
    return data + (b"\0" if rng.random() < 0.02 else b"")


def by_numpy(data):
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    dims, order, dtype = np.lib.format._read_array_header(stream, version)
    return dims, order, dtype, stream.tell()


def differs(data, fields):
    numpy_name, swapped, fortran, start, dims = fields
    ours = (tuple(int(dim) for dim in dims.split(",") if dim), fortran == "1", numpy_name, swapped == "1", int(start))
    try:
        dims, order, dtype, start = by_numpy(data)
    except Exception as error:
        return f"NumPy refuses it ({error}), Ballast reads {ours}"
    theirs = (dims, order, dtype.str[1:], dtype.byteorder == ">", start)
    if theirs != ours:
        return f"NumPy:   {theirs}\nBallast: {ours}"
    return None if len(data) - start == math.prod(dims) * dtype.itemsize else f"{len(data) - start} bytes of data, {dims} {dtype}"
