"""Zip archives whose parts disagree, overlap, point outside or unpack to far more than they are."""
import struct

import zip_forge as zf
from hide_attacks import EVIL
from pickle_asm import pickle
from torch_parts import FLOATS, Sample, entries, record, script_module, script_zip, storage, tensor, torch_zip

CLEAN = pickle({"weight": tensor()})
BAD = pickle({"weight": tensor(), "note": EVIL})
DATA, BYTES, STORE, VERSION = range(4)            # places in the list that `base` returns


def base(**more):
    return entries(CLEAN, **more)


def changed(place, **fields):
    """The clean archive with attributes of one entry changed; dict attributes are merged."""
    out = base()
    for key, value in fields.items():
        setattr(out[place], key, value)
    return out


def plainly(place, **fields):
    """As `changed`, on an entry without data descriptor."""
    return changed(place, flags=fields.pop("flags", 0x800), **fields)


def names():
    local = {"local": {"name": b"archive/DATA.pkl"}}
    yield "name-case", "name-mismatch", changed(DATA, **local), "local name differs from the central one in case"
    yield ("name-local", "name-mismatch", changed(DATA, local={"name": b"archive/safe.txt"}),
           "local header says safe.txt, directory says data.pkl")
    yield ("name-central", "name-mismatch", changed(STORE, local={"name": b"archive/data/1"}),
           "local header of storage 0 names storage 1")
    yield ("name-length", "name-mismatch", changed(DATA, local={"name": b"archive/data.pkl\0.txt"}),
           "local name goes on behind a NUL")
    yield "name-nul", "bad-name", base(extra=[record(b"data/1\0.txt", FLOATS)]), "NUL inside a name"
    yield "name-newline", "bad-name", base(extra=[record(b"data/1\n2", FLOATS)]), "newline inside a name"
    yield "name-escape-code", "bad-name", base(extra=[record(b"data/\x1b[2J", FLOATS)]), "terminal escape inside a name"
    yield ("name-not-utf8", "bad-name", base(extra=[record(b"data/\xff\xfe", FLOATS)]),
           "UTF-8 flag, bytes that are not UTF-8")
    yield "name-empty", "bad-name", base(extra=[zf.Entry(b"", FLOATS)]), "empty name"
    yield "name-dotdot", "path-escape", base(extra=[record(b"../../escape", FLOATS)]), ".. components"
    yield "name-dotdot-end", "path-escape", base(extra=[record(b"data/..", FLOATS)]), "last component is .."
    yield "name-absolute", "path-escape", base(extra=[zf.Entry(b"/escape", FLOATS)]), "absolute name"
    yield "name-drive", "path-escape", base(extra=[zf.Entry(b"C:\\escape", FLOATS)]), "drive letter"
    yield "name-backslash-up", "path-escape", base(extra=[record(b"..\\..\\escape", FLOATS)]), ".. with backslashes"
    yield ("name-backslash", "refused-any", [zf.Entry(e.name.replace(b"/", b"\\"), e.plain) for e in base()],
           "backslashes as separators")
    yield "dup-data", "duplicate-entry", base(extra=[record(b"data.pkl", BAD)]), "second data.pkl holds a call"
    yield "dup-same", "duplicate-entry", base(extra=[record(b"data/0", FLOATS)]), "storage 0 twice, same bytes"
    yield "dup-other", "duplicate-entry", base(extra=[record(b"data/0", b"\0" * 16)]), "storage 0 twice, other bytes"
    yield "dup-case", "duplicate-entry", base(extra=[record(b"DATA.PKL", BAD)]), "names equal but for case"
    yield ("dup-case-prefix", "duplicate-entry", base(extra=[zf.Entry(b"ARCHIVE/data.pkl", BAD)]),
           "prefixes equal but for case")
    other = entries(BAD, prefix=b"other")
    yield "two-prefixes", "zip-ambiguous", base() + other, "two prefixes, each with its data.pkl"
    yield "two-prefixes-order", "zip-ambiguous", other[:1] + base(), "data.pkl of another prefix comes first"
    yield ("root-and-prefix", "zip-ambiguous", base() + [zf.Entry(b"data.pkl", BAD)],
           "data.pkl at the root and in the prefix")
    yield "no-data", "unknown-format", base()[1:], "no data.pkl"
    yield ("not-torch", "unknown-format", [zf.Entry(b"word/document.xml", b"<xml/>"),
           zf.Entry(b"[Content_Types].xml", b"<xml/>")], "an office document")
    yield "empty-data", "truncated", entries(b""), "data.pkl has no bytes"
    yield "byteorder-junk", "refused-any", base(byteorder=b"middle"), "byteorder record says neither little nor big"


def flags():
    for bit, text in ((0x1, "encrypted"), (0x20, "patch data"), (0x40, "strong encryption"),
        (0x2000, "masked headers"), (0x4000, "reserved bit")):
        yield "flag-%x" % bit, "encrypted-flag", changed(DATA, flags=0x0808 | bit), "%s bit on plain data.pkl" % text
    yield ("flag-1-local", "encrypted-flag", changed(DATA, local={"flags": 0x0809}),
           "encrypted bit in the local header only")
    yield ("flag-1-central", "encrypted-flag", changed(DATA, central={"flags": 0x0809}),
           "encrypted bit in the directory only")
    yield "flag-1-storage", "encrypted-flag", changed(STORE, flags=0x0809), "encrypted bit on a storage"
    yield ("flag-1-evil", "encrypted-flag", entries(BAD, pkl={"flags": 0x0809}),
           "encrypted bit hides a data.pkl with a call")
    for method, text in ((99, "AES"), (12, "bzip2"), (14, "LZMA"), (93, "zstd"), (9, "deflate64"), (1, "shrunk"),
        (0xFFFF, "no such method")):
        yield ("method-%d" % method, "unsupported-method", changed(DATA, method=method),
               "data.pkl says method %d (%s)" % (method, text))
    yield "method-storage", "unsupported-method", changed(STORE, method=12), "a storage says bzip2"
    yield ("method-disagree", "zip-ambiguous", plainly(DATA, local={"method": 8}),
           "local header says deflated, directory says stored")


def sizes():
    yield ("crc-data", "bad-crc", changed(DATA, central={"crc": 0x12345678}, desc={"crc": 0x12345678}),
           "wrong CRC of data.pkl")
    yield ("crc-storage", "bad-crc", changed(STORE, central={"crc": 0x12345678}, desc={"crc": 0x12345678}),
           "wrong CRC of a storage")
    yield "crc-flipped", "bad-crc", changed(STORE, packed=FLOATS[:-1] + b"\x41"), "one byte of a storage changed"
    yield "crc-local", "bad-crc", plainly(STORE, local={"crc": 1}), "local CRC differs from the directory's"
    yield "crc-descriptor", "bad-crc", changed(STORE, desc={"crc": 1}), "descriptor CRC differs from the directory's"
    yield ("size-local", "size-mismatch", plainly(STORE, local={"usize": 20, "csize": 20}),
           "local sizes differ from the directory's")
    yield ("size-descriptor", "size-mismatch", changed(STORE, desc={"usize": 12, "csize": 12}),
           "descriptor sizes differ from the directory's")
    yield ("size-stored", "size-mismatch", changed(STORE, central={"usize": 64}),
           "stored record with two different sizes")
    yield ("size-shorter", "size-mismatch", plainly(STORE, central={"usize": 8, "csize": 8}),
           "directory cuts a storage in half")
    yield ("local-zero-no-bit3", "size-mismatch", plainly(STORE, local={"usize": 0, "csize": 0}),
           "zero local sizes without the descriptor bit")
    yield "descriptor-missing", "bad-zip", changed(STORE, desc={"omit": True}), "descriptor bit set, no descriptor"
    yield "descriptor-signature", "bad-zip", changed(STORE, desc={"sig": b"XXXX"}), "descriptor without its signature"
    yield ("local-signature", "bad-zip", changed(STORE, local={"sig": b"PK\x03\x05"}),
           "no local header where the directory points")
    yield ("central-signature", "bad-zip", changed(STORE, central={"sig": b"PK\x01\x03"}),
           "broken signature inside the directory")
    yield ("central-name-length", "bad-zip", changed(VERSION, central={"nlen": 0xFFFF}),
           "name runs past the end of the directory")
    yield ("local-extra-length", "refused-any", changed(VERSION, local={"xlen": 0xFFFF}),
           "local extra field runs past the end of the file")
    yield ("local-outside", "offset-out-of-range", changed(STORE, central={"offset": 0x7FFFFFF0}),
           "local header offset outside the file")
    yield ("local-in-directory", "refused-any", changed(STORE, central={"offset": zf.start_of(base(), 4)}),
           "local header offset points at the directory")
    yield ("data-outside", "offset-out-of-range", changed(VERSION, central={"usize": 1 << 24, "csize": 1 << 24}),
           "record runs past the end of the file")
    yield "entry-disk", "bad-zip", changed(STORE, central={"disk": 3}), "record on disk 3"
    big = {"usize": zf.U32, "csize": zf.U32}
    yield "z64-extra-missing", "bad-zip", changed(STORE, central=dict(big)), "zip64 marker sizes, no zip64 extra field"
    yield ("z64-extra-short", "bad-zip", changed(STORE, central=dict(big, extra=zf.zip64_extra(16))),
           "zip64 extra field too short")
    yield ("z64-extra-length", "bad-zip", changed(STORE, central=dict(big, extra=zf.zip64_extra(16, 16, length=400))),
           "zip64 extra field claims more than there is")
    yield ("z64-extra-huge", "offset-out-of-range", changed(STORE,
           central=dict(big, extra=zf.zip64_extra(1 << 63, 1 << 63))), "zip64 size of 2^63")
    yield ("z64-extra-wrap", "offset-out-of-range", changed(STORE,
           central=dict(big, extra=zf.zip64_extra(zf.U64, zf.U64))), "zip64 size of 2^64-1, wraps with any offset")
    yield ("z64-offset-huge", "offset-out-of-range", changed(STORE,
           central={"offset": zf.U32, "extra": zf.zip64_extra(zf.U64 - 8)}), "zip64 header offset near 2^64")


def overlaps():
    same = base()
    same.append(record(b"data/1", FLOATS, written=False, central={"offset": zf.start_of(same, STORE)}))
    yield "overlap-same-header", "refused-any", same, "two directory entries share one local header"

    # A stored record that quotes the next record's local header: both are valid on their own.
    head = base()
    at = zf.start_of(head, len(head))
    inner = record(b"data/1", FLOATS, align=False, flags=0x800)
    name = b"archive/data/2"
    quoted = at + 30 + len(name)
    outer = zf.Entry(name, zf.local_record(inner, quoted), align=False, flags=0x800)
    inner_listed = record(b"data/1", FLOATS, flags=0x800, written=False, central={"offset": quoted})
    yield ("overlap-quoted", "overlap", head + [outer, inner_listed],
           "a stored record contains another record, both listed")

    # The same with deflate: a non-compressed block swallows the header of the kernel that follows.
    kernel = zf.deflated(b"archive/data/1", b"A" * 4096, align=False, flags=0x800)
    body = zf.local_record(kernel, 0)
    header = body[:-len(kernel.packed)]
    block = b"\x00" + struct.pack("<HH", len(header), len(header) ^ 0xFFFF)
    quoter = zf.Entry(name, header + kernel.plain, packed=block + header + kernel.packed, method=8, align=False,
                      flags=0x800)
    listed = zf.deflated(b"archive/data/1", b"A" * 4096, align=False, flags=0x800, written=False,
                         central={"offset": quoted + len(block)})
    yield ("overlap-deflate-quoted", "overlap", head + [quoter, listed],
           "deflate block quotes the next local header (one kernel, two names)")
    tail = changed(VERSION, flags=0x800)
    tail[VERSION].local = tail[VERSION].central = {"usize": 60, "csize": 60}
    yield "overlap-directory", "overlap", tail, "last record reaches into the directory"


def many_quoted(count):
    """Quoted-overlap bomb: one deflated kernel reachable under `count` names."""
    kernel = zf.deflated(b"archive/data/k", b"\0" * 200000, align=False, flags=0x800)
    tail, plain, listed = zf.local_record(kernel, 0), kernel.plain, []
    stack = [(kernel, tail)]
    for i in range(count):
        header = tail[:30 + len(stack[-1][0].name)]
        block = b"\x00" + struct.pack("<HH", len(header), len(header) ^ 0xFFFF)
        packed, plain = block + tail[:len(header)] + stack[-1][0].packed, header + plain
        entry = zf.Entry(b"archive/data/%03d" % i, plain, packed=packed, method=8, align=False, flags=0x800)
        tail = zf.local_record(entry, 0)
        stack.append((entry, tail))
    out = base()
    at, total = zf.start_of(out, len(out)), len(stack[-1][1])
    for entry, body in reversed(stack):
        entry.written = entry is stack[-1][0]
        entry.central = {"offset": at + total - len(body)}
        listed.append(entry)
    return out + listed


def ends():
    b, build = base(), zf.build
    clean, bad = build(b), build(entries(BAD))
    inner = build_at(entries(BAD), clean)
    yield "two-archives", "refused-any", clean + bad, "two whole archives, one behind the other"
    yield "two-archives-fixed", "zip-ambiguous", clean + inner, "as before, offsets of the second made absolute"
    yield ("end-in-comment", "zip-ambiguous", clean[:-2] + struct.pack("<H", len(inner)) + inner,
           "the comment is another archive, both complete")
    yield "end-in-tail", "zip-ambiguous", clean + zf.end_record(0, 0, 0), "a second, empty end record behind the first"
    yield "comment-long", "refused-any", build(b, end={"clen": 500}), "comment length larger than the rest of the file"
    yield ("count-more", "bad-zip", build(b, end={"here": 9, "total": 9}, zip64=False),
           "end record counts 9 entries, 4 exist")
    yield ("count-less", "bad-zip", build(b, end={"here": 2, "total": 2}, zip64=False),
           "end record counts 2 entries, 4 exist")
    yield ("count-zero", "refused-any", build(b, end={"here": 0, "total": 0}, zip64=False),
           "end record counts no entries")
    yield "count-disk", "bad-zip", build(b, end={"here": 1}, zip64=False), "entries on this disk differ from the total"
    yield ("multi-disk", "bad-zip", build(b, end={"disk": 1, "start": 0}, zip64=False),
           "archive says it is disk 1 of several")
    yield "directory-size", "bad-zip", build(b, end={"size": 46}, zip64=False), "directory size too small"
    yield "directory-size-big", "refused-any", build(b, end={"size": 0x7FFFFFFF}, zip64=False), "directory size 2 GB"
    yield ("directory-outside", "offset-out-of-range", build(b, end={"offset": 0x7FFFFFFF}, zip64=False),
           "directory offset outside the file")
    yield ("directory-shifted", "bad-zip", build(b, end={"offset": 1}, zip64=False),
           "directory offset points into a record")
    yield ("z64-count", "zip-ambiguous", build(b, end64={"here": 9, "total": 9}),
           "zip64 end record counts other entries than the plain one")
    yield ("z64-count-huge", "bad-zip", build(b, end={"here": 0xFFFF, "total": 0xFFFF},
           end64={"here": 1 << 60, "total": 1 << 60}), "zip64 end record counts 2^60 entries")
    yield ("z64-offset", "zip-ambiguous", build(b, end64={"offset": 64}),
           "zip64 directory offset differs from the plain one")
    yield ("z64-size", "zip-ambiguous", build(b, end64={"size": 1 << 40}),
           "zip64 directory size differs from the plain one")
    yield ("z64-directory-huge", "offset-out-of-range",
           build(b, end={"offset": zf.U32}, end64={"offset": zf.U64 - 100}), "zip64 directory offset near 2^64")
    yield ("z64-locator-outside", "offset-out-of-range", build(b, locator={"offset": 1 << 50}),
           "zip64 locator points outside the file")
    yield "z64-locator-wrong", "bad-zip", build(b, locator={"offset": 0}), "zip64 locator points at a local header"
    yield "z64-locator-disks", "bad-zip", build(b, locator={"disks": 7}), "zip64 locator counts 7 disks"
    yield "z64-length", "bad-zip", build(b, end64={"length": 1 << 60}), "zip64 end record claims a length of 2^60"
    yield ("z64-needed", "bad-zip", build(b, zip64=False, end={"offset": zf.U32, "size": zf.U32}),
           "plain end record defers to zip64 records that are absent")
    yield "prefix-script", "unknown-format", b"#!/bin/sh\nexit 0\n" + clean, "shell script before the archive"
    yield "first-bytes", "truncated", b"PK\x03\x04", "the four magic bytes and nothing else"


def hidden():
    """What only a reader that begins at the first byte would find, and entries that are no files."""
    evil = zf.local_record(zf.Entry(b"archive/data.pkl", BAD, flags=0x800, align=False), 0)
    yield "hidden-record", "zip-ambiguous", zf.build(base(), gap=evil), "a data.pkl before the directory that it does not list"
    yield "hidden-first", "zip-ambiguous", zf.build(base(), lead=evil), "the same before the first record"
    yield "hidden-junk", "zip-ambiguous", zf.build(base(), gap=b"junk"), "bytes that belong to no entry"
    inside = zf.deflated(b"archive/code/x.py", b"print()" * 50)
    inside.packed += evil
    yield ("hidden-in-deflated", "bad-zip", zf.build(base(extra=[inside])), "a record behind the end of a deflated one, inside its bytes")
    yield ("link", "zip-ambiguous", zf.build(changed(STORE, central={"attributes": 0o120777 << 16})), "a storage that is a symbolic link")
    yield ("device", "zip-ambiguous", zf.build(changed(STORE, central={"attributes": 0o020666 << 16})), "a storage that is a device")
    yield ("folder-marked", "zip-ambiguous", zf.build(changed(STORE, central={"attributes": 0x10})), "a storage that DOS takes for a folder")
    yield "folder-data", "bad-zip", zf.build(base(extra=[record(b"data/x/", FLOATS)])), "a folder with content"
    deep = [record(b"%02d/" % i + b"a/" * 30000 + b"x", FLOATS) for i in range(4)]
    yield ("file-and-deep-folder", "zip-ambiguous", zf.build(base(extra=[*deep, record(b"03/" + b"A/" * 29999 + b"a", FLOATS)])),
           "a file that is a folder in another case, among names of very many folders")
    yield ("file-and-folder", "zip-ambiguous", zf.build(base(extra=[record(b"data.pkl/0", FLOATS)])), "a file below data.pkl")
    yield "name-twice-slash", "bad-name", zf.build(base(extra=[record(b"data//0", FLOATS)])), "data//0 beside data/0"
    yield "name-dot", "bad-name", zf.build(base(extra=[record(b"./data.pkl", BAD)])), "./data.pkl beside data.pkl"
    other = struct.pack("<HHBI", 0x7075, 8, 1, 0) + b"x.y"
    yield ("name-unicode-field", "name-mismatch", zf.build(changed(STORE, central={"extra": other})), "another name in Info-ZIP's Unicode field")


def build_at(members, before):
    """Archive meant to be placed behind `before`, with absolute offsets."""
    return zf.build(members, lead=before)[len(before):]


def bombs():
    stream, crc = zf.zeros_bomb(512)
    huge, n = 512 << 20, 128 << 20
    fill = dict(packed=stream, method=8, crc=crc)
    pkl = pickle({"weight": tensor(storage(numel=n), size=(n,))})
    yield ("bomb-storage", "expansion-limit", zf.build([record(b"data.pkl", pkl),
           record(b"data/0", b"", size=huge, **fill), record(b"version", b"3\n")]),
           "0.5 MB storage that inflates to 512 MiB, sizes honest")
    yield ("bomb-storage-lie", "size-mismatch", zf.build([record(b"data.pkl", CLEAN),
           record(b"data/0", b"", size=16, **fill), record(b"version", b"3\n")]),
           "storage that inflates to 512 MiB, directory says 16 bytes")
    yield ("bomb-pickle", "expansion-limit", zf.build([record(b"data.pkl", b"", size=huge, **fill),
           record(b"version", b"3\n")]), "data.pkl that inflates to 512 MiB")
    yield ("bomb-pickle-lie", "size-mismatch", zf.build([record(b"data.pkl", b"", size=200, **fill),
           record(b"version", b"3\n")]), "data.pkl that inflates to 512 MiB, directory says 200 bytes")
    yield "bomb-quoted", "overlap", zf.build(many_quoted(200)), "200 records over one deflated kernel (quoted overlap)"
    cut = zf.deflated(b"archive/data/0", FLOATS)
    cut.packed = cut.packed[:-4]
    yield ("deflate-cut", "refused-any", zf.build([record(b"data.pkl", CLEAN), cut, record(b"version", b"3\n")]),
           "deflate stream ends early")
    junk = zf.Entry(b"archive/data/0", FLOATS, packed=b"\xff" * 16, method=8)
    yield ("deflate-junk", "refused-any", zf.build([record(b"data.pkl", CLEAN), junk, record(b"version", b"3\n")]),
           "deflate stream of a reserved block type")
    tail = zf.deflated(b"archive/data/0", FLOATS)
    tail.packed += b"hidden bytes"
    yield ("deflate-tail", "refused-any", zf.build([record(b"data.pkl", CLEAN), tail, record(b"version", b"3\n")]),
           "bytes behind the end of a deflate stream")


def samples():
    for group in (names, flags, sizes, overlaps):
        for name, say, members, text in group():
            yield Sample("zip-" + name, "pt", say, "zip", text, zf.build(members))
    for name, say, data, text in [*ends(), *hidden()]:
        yield Sample("zip-" + name, "pt", say, "zip", text, data)
    for name, say, data, text in bombs():
        yield Sample("zip-" + name, "pt", say, "bomb", text, data)
    whole = torch_zip({"weight": tensor()}, {"0": FLOATS})
    script = script_zip(script_module({"weight": tensor()}))
    places = [("half", len(whole) // 2), ("in-first-header", 20), ("in-first-name", 35), ("in-data", 100),
        ("in-directory", len(whole) - 150),
              ("before-end64", len(whole) - 98), ("before-locator", len(whole) - 42), ("before-end", len(whole) - 22),
               ("in-end", len(whole) - 9), ("last-byte", len(whole) - 1)]
    for name, at in places:
        yield Sample("cut-zip-" + name, "pt", "truncated", "cut", "torch zip cut at byte %d of %d" % (at, len(whole)),
                     whole[:at])
    yield Sample("cut-script", "pt", "truncated", "cut", "TorchScript archive cut in half", script[:len(script) // 2])
