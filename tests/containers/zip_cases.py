# SPDX-License-Identifier: Apache-2.0
"""Zip archives by grammar: honest ones, and such that lie in any field or hide something anywhere. And two readers: zipfile, and one that begins at the first byte."""
import io
import random
import struct
import zipfile
import zlib

import zip_forge as zf

NAMES = [b"a/data.pkl", b"a/data/0", b"a/data/1", b"a/version", b"A/data.pkl", b"a/DATA/0", b"a/", b"a", b"a/data", b"a/data/", b"a//data.pkl", b"./a/version", b"a/./version",
         b"a/x/../version", b"../up", b"/root", b"c:\\x", b"a\\b", b"a/n\0ul", b"a/n", b"a/\xc3\xa9", b"a/e\xcc\x81", b"a/\xe9", b"weight.npy", b"a/.", b"..", b".", b"", b"a/ ", b"a/line\n",
         b"a/data.pkl ", b"a/data.pkl.", b"con", b"a:b", b"\xef\xbb\xbfa"]
EDGES = [0, 1, 2, 3, 7, 8, 15, 16, 22, 30, 31, 46, 0x7F, 0x80, 0xFF, 0xFFFE, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]
LINK, FOLDER, FILE = 0o120777 << 16, 0o040755 << 16, 0o100644 << 16


def number(rng, near=0):
    return rng.choice([rng.choice(EDGES), max(near + rng.randint(-2, 2), 0), rng.randrange(1 << rng.randint(1, 32))])


def content(rng):
    return rng.choice([b"", b"x", b"hello " * rng.randint(1, 40), rng.randbytes(rng.randint(1, 64)), b"PK\x03\x04" + bytes(30), b"\x80\x02}q\x00."])


def entry(rng, place):
    name = rng.choice(NAMES) if rng.random() < 0.15 else b"a/data/%d" % place
    kind = rng.random()
    plain = b"" if name.endswith(b"/") and rng.random() < 0.8 else content(rng)
    flags = rng.choice([0, 0x800]) if kind < 0.5 else 0x808
    if any(c >= 0x80 for c in name) and rng.random() < 0.8:
        flags |= 0x800
    made = zf.deflated(name, plain, flags=flags, align=rng.random() < 0.3) if rng.random() < 0.4 else zf.Entry(name, plain, flags=flags, align=rng.random() < 0.5)
    if rng.random() < 0.2:
        made.central["attributes"] = rng.choice([FILE, FOLDER | 0x10, FILE, 0x10, LINK, 0o020666 << 16, 0x20])
    return made


def lie(rng, made):
    """One field of one entry changed."""
    where = rng.choice(["local", "central", "both", "desc"])
    true = made.true()
    field = rng.choice(["crc", "csize", "usize", "flags", "method", "name", "nlen", "xlen", "extra", "sig", "version", "disk", "offset", "comment"])
    value = number(rng, true.get(field, 8))
    if field in ("flags", "method", "nlen", "xlen", "version", "disk"):
        value = rng.choice([0, 1, 8, 9, 0x800, 0x808, 0x809, 12, 20, 99, value & 0xFFFF]) & 0xFFFF
    if field in ("csize", "usize", "offset"):
        value &= zf.U32
    if field == "name":
        value = rng.choice(NAMES)
    if field == "sig":
        value = rng.choice([b"PK\x03\x04", b"PK\x01\x02", b"PK\x07\x08", b"PK\x05\x06", b"XXXX"])
    if field == "comment":
        value = rng.choice([b"c", b"PK\x05\x06" + bytes(18), bytes(40)])
    if field == "extra":
        value = rng.choice([b"", b"\0", zf.zip64_extra(true["usize"], true["csize"]), zf.zip64_extra(1, 2), zf.zip64_extra(5) + zf.zip64_extra(6), b"FB\x02\0ZZ", b"FB\x20\0Z",
                            struct.pack("<HHBI", 0x7075, 5 + len(made.name), 1, zlib.crc32(made.name)) + made.name, struct.pack("<HHBI", 0x7075, 8, 1, zlib.crc32(made.name)) + b"xyz"])
        if rng.random() < 0.4:
            made.central.update(usize=zf.U32, csize=zf.U32, extra=zf.zip64_extra(true["usize"], true["csize"]) + (zf.zip64_extra(9, 9) if rng.random() < 0.3 else b""))
            return
    if where == "desc":
        made.desc.update({rng.choice(["crc", "csize", "usize"]): value} if isinstance(value, int) else {"omit": True})
        return
    for target in {"local": [made.local], "central": [made.central], "both": [made.local, made.central]}[where]:
        target[field] = value


def assemble(rng, entries, tricks):
    """Records with something between them, the directory, the ends."""
    out, listed = bytearray(rng.choice([b"", b"", b"#!/bin/sh\n", bytes(4)]) if "lead" in tricks else b""), []
    for made in entries:
        if "between" in tricks and rng.random() < 0.5:
            hidden = zf.Entry(rng.choice([b"a/hidden.pkl", made.name]), b"evil", flags=rng.choice([0x800, 0x808]), align=False)
            out += rng.choice([zf.local_record(hidden, len(out)), bytes(rng.randint(1, 40)), b"junk", b"PK\x07\x08" + bytes(12)])
        if "overlap" in tricks and listed and rng.random() < 0.5:
            listed.append((made, rng.choice(listed)[1] + rng.choice([0, 0, 1, 30])))
            continue
        if "inside" in tricks and made.method == 8:
            hidden = zf.local_record(zf.Entry(b"a/hidden.pkl", b"evil", flags=0x800, align=False), 0)
            made.packed = made.data() + hidden
        listed.append((made, len(out)))
        out += zf.local_record(made, len(out))
    if "gap" in tricks:
        out += rng.choice([bytes(rng.randint(1, 70)), zf.local_record(zf.Entry(b"a/last", b"x", align=False, flags=0x800), 0), b"APK Sig Block 42"])
    if "order" in tricks:
        rng.shuffle(listed)
    if "unlisted" in tricks and len(listed) > 1:
        listed.pop(rng.randrange(len(listed)))
    start, count = len(out), len(listed)
    for made, at in listed:
        out += zf.central_record(made, at)
    size = len(out) - start
    lies = {}
    if "end" in tricks:
        field = rng.choice(["here", "total", "size", "offset", "disk", "start", "clen"])
        lies[field] = number(rng, {"size": size, "offset": start}.get(field, count)) & (0xFFFFFFFF if field in ("size", "offset") else 0xFFFF)
    if "zip64" in tricks:
        lies64 = {rng.choice(["here", "total", "size", "offset", "length"]): number(rng, rng.choice([count, size, start]))} if rng.random() < 0.5 else {}
        at = len(out)
        out += zf.zip64_end(count, size, start, **lies64)
        if rng.random() < 0.2:
            out += zf.zip64_end(0, 0, 0)
        out += zf.zip64_locator(at, **({"offset": number(rng, at)} if rng.random() < 0.2 else {}))
        if rng.random() < 0.3:
            lies = {"size": zf.U32, "offset": zf.U32, "here": 0xFFFF, "total": 0xFFFF}
    comment = b""
    if "comment" in tricks:
        comment = rng.choice([b"hello", zf.end_record(0, 0, 0), zf.end_record(count, size, start), bytes(30)])
    out += zf.end_record(count, size, start, comment, **lies)
    if "tail" in tricks:
        out += rng.choice([b"\0", b"\x80\x02.", zf.end_record(0, 0, 0), zf.end_record(count, size, start), b"PK\x05\x06"])
    return bytes(out)


TRICKS = ["lead", "between", "overlap", "inside", "gap", "order", "unlisted", "end", "zip64", "comment", "tail"]


def make(rng):
    entries = [entry(rng, place) for place in range(rng.randint(0, 4))]
    tricks = {rng.choice(TRICKS) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))}
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        if entries:
            lie(rng, rng.choice(entries))
    try:
        data = assemble(rng, entries, tricks)
    except struct.error:  # a lie that does not fit into its field
        return make(rng)
    if rng.random() < 0.1 and data:
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 0xFF, rng.randrange(256)])
        data = bytes(changed)
    if rng.random() < 0.03 and data:
        data = data[: rng.randrange(len(data))]
    return data


def by_zipfile(data):
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [(info.filename.encode("utf-8", "surrogateescape"), archive.read(info)) for info in archive.infolist()]
    except Exception:  # whatever it raises, it does not read it
        return None


def central_sizes(data):
    """Where stored records end whose local headers do not say it: no reader that streams can know without them."""
    sizes = {}
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        if at + 46 <= len(data):
            csize, = struct.unpack_from("<I", data, at + 20)
            sizes.setdefault(struct.unpack_from("<I", data, at + 42)[0], csize)
        at = data.find(b"PK\x01\x02", at + 1)
    return sizes


def by_streaming(data):
    """Local headers from the first byte on, until something else comes."""
    at, found, sizes = 0, [], central_sizes(data)
    try:
        while data[at : at + 4] == b"PK\x03\x04":
            flags, method, _, _, crc, csize, usize, nlen, xlen = struct.unpack_from("<HHHHIIIHH", data, at + 6)
            name = data[at + 30 : at + 30 + nlen]
            body = at + 30 + nlen + xlen
            if csize == zf.U32 or usize == zf.U32:
                return None
            if method == 8:
                inflater = zlib.decompressobj(-15)
                plain = inflater.decompress(data[body : body + csize] if csize or not flags & 8 else data[body:]) + inflater.flush()
                if not inflater.eof:
                    return None
                end = body + csize if csize and not flags & 8 else len(data) - len(inflater.unused_data) if not csize else body + csize - len(inflater.unused_data)
            elif method == 0:
                length = csize if csize or not flags & 8 else sizes.get(at, 0)
                plain, end = data[body : body + length], body + length
            else:
                return None
            if flags & 8:
                signed = 4 if data[end : end + 4] == b"PK\x07\x08" else 0
                wide = struct.unpack_from("<Q", data, end + signed + 4)[0] == end - body and end - body > 0
                wide = wide or (end == body and data[end + signed + 4 : end + signed + 20] == bytes(16) and data[end + signed + 12 : end + signed + 14] != b"PK")
                end += signed + (20 if wide else 12)
            found.append((name, plain))
            at = end
        return found
    except Exception:
        return None


def differs(data, fields):
    """Why what Ballast found (fields of its line) is not what the others find; None when it is."""
    notes = int(fields[0])
    ours = [tuple(bytes.fromhex(part[1:]) for part in field.split("=")) for field in fields[1:]]
    theirs = by_zipfile(data)
    if theirs is not None and theirs != ours:
        return f"zipfile: {theirs}\nBallast: {ours}"
    streamed = by_streaming(data)
    if streamed is not None and streamed != ours and notes == 0:
        return f"streamed: {streamed}\nBallast: {ours}"
    return None
