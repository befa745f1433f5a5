# SPDX-License-Identifier: Apache-2.0
"""Tar archives by grammar, and Python's tarfile as their other reader."""
import io
import tarfile

import tar_forge as tf

NAMES = [b"pickle", b"storages", b"tensors", b"sys_info", b"./pickle", b"a/b", b"a//b", b"a/./b", b"../x", b"/x", b"a\\b", b"pickle/", b"", b".", b"x" * 100, b"\xc3\xa9", b"\xe9", b"n\0ul", b"./a/", b"A"]
KINDS = [b"0"] * 8 + [b"\0", b"5", b"1", b"2", b"3", b"4", b"6", b"7", b"S", b"K", b"V", b"M", b"Z"]
SIZES = [b"00000000003\0", b"0000000003 \0", b"3\0", b"", b"-0000000003\0", b"000000000009", b"0o3\0", b"\x80" + bytes(10) + b"\x03", b"\xff" * 12, b"\x80" + b"\xff" * 11, b"\xff" * 11 + b"\xfd", b"77777777777\0", b"3\x00005"]


def record(key, value):
    text = b" " + key + b"=" + value + b"\n"
    length = len(text) + 1
    while length != len(text) + len(b"%d" % length):
        length = len(text) + len(b"%d" % length)
    return b"%d" % length + text


def pax_body(rng, size):
    keys = [b"path", b"size", b"comment", b"linkpath", b"hdrcharset", b"GNU.sparse.name", b"GNU.sparse.size", b"GNU.sparse.major", b"mtime"]
    body = b""
    for _ in range(rng.randint(0, 2)):
        key = rng.choice(keys)
        value = {b"path": rng.choice(NAMES + [b"long/" + b"y" * 120]), b"size": rng.choice([b"%d" % size, b"%d" % (size + 1), b"", b"0", b"-1"]), b"hdrcharset": b"BINARY",
                 b"GNU.sparse.size": b"7", b"GNU.sparse.major": b"1"}.get(key, b"v")
        body += record(key, value)
    return rng.choice([body] * 8 + [body + b"\0", body + b"junk", body[:-1]])


def piece(rng, place):
    data = rng.choice([b"", b"abc", b"x" * 512, rng.randbytes(rng.randint(1, 600))])
    name = rng.choice(NAMES) if rng.random() < 0.3 else b"member%d" % place
    lies = {}
    if rng.random() < 0.15:
        data = b"abc"
        lies["size_field"] = rng.choice(SIZES)
    if rng.random() < 0.1:
        lies["magic"] = rng.choice([b"ustar  \0", b"ustar\x0000", bytes(8), b"ustar\0\0\0"])
    if rng.random() < 0.1:
        lies["prefix"] = rng.choice([b"pre", b"pre/fix", b"..", b"/"])
    if rng.random() < 0.03:
        lies["checksum"] = rng.choice([b"0000000\0", bytes(8)])
    kind = rng.choice(KINDS) if rng.random() < 0.25 else b"0"
    out = b""
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        out += rng.choice([lambda: tf.member(b"PaxHeaders/x", pax_body(rng, len(data)), kind=b"x"), lambda: tf.member(b"global", pax_body(rng, len(data)), kind=b"g"),
                           lambda: tf.member(b"././@LongLink", rng.choice(NAMES + [b"z" * 130]) + b"\0", kind=b"L")])()
    return out + tf.member(name, data, kind=kind, link=b"target" if kind in (b"1", b"2") else b"", **lies)


def make(rng):
    data = b"".join(piece(rng, place) for place in range(rng.randint(0, 4)))
    data += rng.choice([bytes(1024)] * 6 + [b"", bytes(512), bytes(1024) + tf.member(b"late", b"x"), bytes(10240), bytes(512) + tf.member(b"late", b"x") + bytes(1024)])
    if rng.random() < 0.08 and data:
        changed = bytearray(data)
        changed[rng.randrange(len(changed))] = rng.choice([0, 0x20, 0x30, 0xFF, rng.randrange(256)])
        data = bytes(changed)
    if rng.random() < 0.04:
        data = data[: rng.randrange(len(data) + 1)]
    return data


def differs(data, fields):
    ours = [tuple(bytes.fromhex(part[1:]) for part in field.split("=")) for field in fields]
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            theirs = [(info.name.encode("utf-8", "surrogateescape"), archive.extractfile(info).read()) for info in archive.getmembers() if not info.isdir()]
    except Exception:  # whatever it raises, it does not read it
        return None
    return None if theirs == ours else f"tarfile: {theirs}\nBallast: {ours}"
