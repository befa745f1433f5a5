"""A zip writer that can lie in every field.

An `Entry` is honest by default and laid out as torch lays it out (stored, flags 0x0808, zero sizes in
the local header, padding to 64 bytes, data descriptor). The dictionaries `local`, `central` and `desc`
override single fields of the three places where a zip repeats itself; `build` does the same for the
three end records.
"""
import struct
import zlib
from dataclasses import dataclass, field
from typing import Optional

U32, U64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
DESCRIPTOR_FLAG = 0x8


def deflate(data, level=9):
    """Raw deflate stream."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def zeros_bomb(mebibytes):
    """(raw deflate stream, CRC) of that many MiB of zeros, made from one repeated block."""
    unit = bytes(1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(mebibytes):
        crc = zlib.crc32(unit, crc)
    return block * mebibytes + b"\x03\x00", crc


@dataclass
class Entry:
    name: bytes
    plain: bytes = b""                      # the content
    packed: Optional[bytes] = None          # what lies in the file, when not the content itself
    method: int = 0
    flags: int = 0x0808
    size: Optional[int] = None              # honest uncompressed size, when `plain` is too big to hold
    crc: Optional[int] = None               # honest CRC in the same case
    local: dict = field(default_factory=dict)
    central: dict = field(default_factory=dict)
    desc: dict = field(default_factory=dict)
    written: bool = True                    # False: listed in the directory, but no local header of its own
    align: bool = True

    def data(self):
        return self.plain if self.packed is None else self.packed

    def true(self):
        crc = zlib.crc32(self.plain) if self.crc is None else self.crc
        return {"crc": crc, "csize": len(self.data()), "usize": len(self.plain) if self.size is None else self.size}


def deflated(name, plain, **more):
    return Entry(name, plain, packed=deflate(plain), method=8, **more)


def local_record(entry, at):
    """Local header, data and descriptor of one entry that starts at offset `at`."""
    f = {"sig": b"PK\x03\x04", "version": 20 if entry.method else 0, "flags": entry.flags, "method": entry.method,
         "name": entry.name, "extra": None}
    f.update({"crc": 0, "csize": 0, "usize": 0} if entry.flags & DESCRIPTOR_FLAG else entry.true())
    f.update(entry.local)
    if f["extra"] is None:
        pad = -(at + 30 + len(f["name"]) + 4) % 64
        f["extra"] = b"FB" + struct.pack("<H", pad) + b"Z" * pad if entry.align else b""
    out = f["sig"] + struct.pack("<HHHHHIIIHH", f["version"], f["flags"], f["method"], 0, 0x21, f["crc"] & U32,
                                 f["csize"], f["usize"], f.get("nlen", len(f["name"])), f.get("xlen", len(f["extra"])))
    out += f["name"] + f["extra"] + entry.data()
    if entry.flags & DESCRIPTOR_FLAG:
        d = {**entry.true(), "sig": b"PK\x07\x08", **entry.desc}
        if not d.get("omit"):
            out += d["sig"] + struct.pack("<III", d["crc"] & U32, d["csize"], d["usize"])
    return out


def central_record(entry, at):
    """Directory entry of one member whose local header is at offset `at`."""
    f = {"sig": b"PK\x01\x02", "made": 0, "version": 20 if entry.method else 0, "flags": entry.flags,
         "method": entry.method, "name": entry.name, "extra": b"", "comment": b"", "disk": 0, "offset": at}
    f.update(entry.true())
    f.update(entry.central)
    return (f["sig"] + struct.pack("<HHHHHHIIIHHHHHII", f["made"], f["version"], f["flags"], f["method"], 0, 0x21,
                                   f["crc"] & U32, f["csize"], f["usize"], f.get("nlen", len(f["name"])),
                                   len(f["extra"]), len(f["comment"]), f["disk"], 0, f.get("attributes", 0), f["offset"] & U32)
            + f["name"] + f["extra"] + f["comment"])


def zip64_extra(*numbers, length=None):
    """Zip64 extra field holding the given u64 values."""
    body = b"".join(struct.pack("<Q", n) for n in numbers)
    return struct.pack("<HH", 1, len(body) if length is None else length) + body


def zip64_end(count, size, offset, /, **lie):
    f = {"disk": 0, "start": 0, "here": count, "total": count, "size": size, "offset": offset}
    f.update(lie)
    return b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", f.get("length", 44), 0, 0, f["disk"], f["start"], f["here"],
                                       f["total"], f["size"], f["offset"])


def zip64_locator(offset, /, **lie):
    f = {"disk": 0, "offset": offset, "disks": 1}
    f.update(lie)
    return b"PK\x06\x07" + struct.pack("<IQI", f["disk"], f["offset"], f["disks"])


def end_record(count, size, offset, comment=b"", /, **lie):
    f = {"disk": 0, "start": 0, "here": count, "total": count, "size": size, "offset": offset, "clen": len(comment)}
    f.update(lie)
    return b"PK\x05\x06" + struct.pack("<HHHHIIH", f["disk"], f["start"], f["here"], f["total"], f["size"],
                                       f["offset"], f["clen"]) + comment


def start_of(entries, place):
    """Offset of the local header of entry number `place` (the directory, when place is the number of entries)."""
    at = 0
    for entry in entries[:place]:
        at += len(local_record(entry, at)) if entry.written else 0
    return at


def build(entries, *, lead=b"", gap=b"", after_directory=b"", comment=b"", tail=b"", zip64=True,
          end=None, end64=None, locator=None):
    """The whole archive. `end`, `end64`, `locator` are dictionaries of lies for the end records."""
    out, places = bytearray(lead), []
    for entry in entries:
        places.append(len(out))
        if entry.written:
            out += local_record(entry, len(out))
    out += gap
    start = len(out)
    for entry, at in zip(entries, places):
        out += central_record(entry, at)
    size, count = len(out) - start, len(entries)
    out += after_directory
    if zip64:
        at64 = len(out)
        out += zip64_end(count, size, start, **(end64 or {}))
        out += zip64_locator(at64, **(locator or {}))
    out += end_record(count, size, start, comment, **(end or {}))
    return bytes(out + tail)
