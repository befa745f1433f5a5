"""Legacy streams and torch 0.1 tars whose parts disagree."""
import struct

import tar_forge as tar
from pickle_asm import glob, persistent, pickle, val
from torch_parts import (FLOATS, MAGIC, SYS_INFO, Sample, cls, legacy, legacy_storage, legacy_tensor, longs,
                         tar_parts, tensor, torch_tar)


def legacy_rows():
    blob = longs(4) + FLOATS
    two = {"a": legacy_tensor(), "b": legacy_tensor(key="1")}
    yield ("numel-more", "size-mismatch", legacy(blobs=[longs(5) + FLOATS + b"\0\0\0\0"]),
           "storage header says 5 elements, persistent id says 4")
    yield "numel-less", "size-mismatch", legacy(blobs=[longs(3) + FLOATS]), "storage header says 3 elements"
    yield "numel-zero", "size-mismatch", legacy(blobs=[longs(0)]), "storage header says no elements"
    yield "numel-negative", "size-mismatch", legacy(blobs=[longs(-4) + FLOATS]), "storage header says -4 elements"
    yield "numel-huge", "size-mismatch", legacy(blobs=[longs(1 << 61) + FLOATS]), "storage header says 2^61 elements"
    yield ("numel-both-big", "truncated", legacy({"weight": legacy_tensor(numel=1 << 40)},
           blobs=[longs(1 << 40) + FLOATS]), "header and persistent id agree on 2^40 elements")
    yield ("numel-both-wrap", "size-overflow", legacy({"weight": legacy_tensor(numel=1 << 62)},
           blobs=[longs(1 << 62) + FLOATS]), "numel * 4 wraps to 0")
    yield "key-missing", "missing-storage", legacy(two), "key list lacks the second storage"
    yield "keys-empty", "missing-storage", legacy(keys=[], blobs=[]), "key list is empty"
    yield ("key-unknown", "refused-any", legacy(keys=["0", "9"], blobs=[blob, blob]),
           "key list names a storage nobody uses")
    yield "key-twice", "refused-any", legacy(keys=["0", "0"], blobs=[blob, blob]), "key list names one storage twice"
    yield "key-type", "type-mismatch", legacy(keys=[{}]), "key list holds a dict"
    yield "keys-dict", "type-mismatch", legacy(keys=val({"0": 1})), "key list is a dict"
    yield "keys-text", "type-mismatch", legacy(keys=val("0")), "key list is a string"
    yield "keys-none", "type-mismatch", legacy(keys=val(None)), "key list is None"
    yield ("keys-many", "refused-any", legacy(keys=[str(i) for i in range(50000)]),
           "key list of 50,000 names, one storage")
    yield "trailing", "trailing-data", legacy() + b"tail", "bytes behind the last storage"
    yield "trailing-zeros", "trailing-data", legacy() + bytes(512), "zeros behind the last storage"
    yield "version", "unsupported", legacy(protocol=1002), "protocol version 1002"
    yield "version-text", "type-mismatch", legacy(protocol="1001"), "protocol version is a string"
    yield "sysinfo-list", "type-mismatch", legacy(info=[1]), "sys_info is a list"
    yield "endian-text", "type-mismatch", legacy(info=dict(SYS_INFO, little_endian="yes")), "little_endian is a string"
    yield "endian-tensor", "type-mismatch", legacy(info=dict(SYS_INFO, little_endian={})), "little_endian is a dict"
    yield "magic-near", "refused-any", legacy(magic=MAGIC + 1), "magic number off by one"
    yield "magic-text", "refused-any", legacy(magic="torch"), "magic number is a string"
    yield ("pid-short", "type-mismatch", legacy({"weight": tensor(persistent(("storage", cls("FloatStorage"),
           "0")))}), "persistent id of three items")
    yield ("pid-kind", "refused-any", legacy({"weight": tensor(persistent(("module",)))}),
           "'module' persistent id without a class where a storage belongs")
    yield ("two-numels", "size-mismatch", legacy({"a": legacy_tensor(), "b": legacy_tensor(numel=8)}),
           "one key, two numels")
    yield "type-unknown", "bad-dtype", legacy({"weight": legacy_tensor(kind="Float3Storage")}), "torch.Float3Storage"
    yield ("view-beyond", "offset-out-of-range", legacy({"w": tensor(legacy_storage(view=("1", 2, 4)))}),
           "view of 4 elements from offset 2 of 4")
    yield ("view-negative", "offset-out-of-range", legacy({"w": tensor(legacy_storage(view=("1", -1, 4)))}),
           "view from offset -1")
    yield ("view-wraps", "refused-any", legacy({"w": tensor(legacy_storage(view=("1", 2**63 - 1, 4)))}),
           "view offset + size wraps")
    yield "view-short", "type-mismatch", legacy({"w": tensor(legacy_storage(view=("1",)))}), "view metadata of one item"
    yield ("view-tensor-beyond", "offset-out-of-range", legacy({"w": tensor(legacy_storage(view=("1", 2, 2)))}),
           "tensor of 4 over a view of 2")
    yield ("tensor-beyond", "offset-out-of-range", legacy({"w": tensor(legacy_storage(), size=(5,))}),
           "tensor of 5 over a storage of 4")
    yield ("source-class", "ok", legacy({"m": persistent(("module", glob("mynet", "Net"), "net.py",
           "import os; os.system('x')")), "weight": legacy_tensor()}), "source text of a module is only text")


def legacy_cuts():
    whole = legacy()
    heads = [len(pickle(part)) for part in (MAGIC, 1001, SYS_INFO)]
    for name, at in (("in-magic", 8), ("after-magic", heads[0]), ("in-version", heads[0] + 3),
        ("in-sysinfo", sum(heads) - 20), ("after-sysinfo", sum(heads)),
                     ("in-object", sum(heads) + 60), ("in-keys", len(whole) - 28),
                      ("before-storages", len(whole) - 24), ("in-numel", len(whole) - 20),
                     ("in-storage", len(whole) - 7), ("last-byte", len(whole) - 1)):
        yield name, whole[:at], "legacy stream cut at byte %d of %d" % (at, len(whole))


def tar_rows():
    parts = tar_parts()
    members = [tar.member(name.encode(), data) for name, data in parts.items()]
    yield "count-huge", "refused-any", torch_tar(count=10**18), "storages member counts 10^18 storages"
    yield "count-billion", "refused-any", torch_tar(count=10**9), "storages member counts 10^9 storages"
    yield "count-negative", "refused-any", torch_tar(count=-1), "storages member counts -1 storages"
    yield "count-text", "type-mismatch", torch_tar(count="1"), "storage count is a string"
    yield "tensors-huge", "refused-any", torch_tar(tensors=10**12), "tensors member counts 10^12 tensors"
    yield "numel-huge", "truncated", torch_tar(numel=1 << 40), "storage of 2^40 elements"
    yield "numel-wraps", "size-overflow", torch_tar(numel=1 << 62), "storage of 2^62 elements, bytes wrap to 0"
    yield "numel-negative", "refused-any", torch_tar(numel=-4), "storage of -4 elements"
    yield "ndim-huge", "refused-any", torch_tar(ndim=0x7FFFFFFF), "tensor of 2^31-1 dimensions"
    yield "ndim-negative", "refused-any", torch_tar(ndim=-1), "tensor of -1 dimensions"
    yield "size-negative", "refused-any", torch_tar(dims=(-4,)), "tensor size -4"
    yield "size-beyond", "offset-out-of-range", torch_tar(dims=(5,)), "tensor of 5 over a storage of 4"
    yield "offset-beyond", "offset-out-of-range", torch_tar(offset=1 << 40), "tensor offset 2^40"
    yield "expand", "expanded-view", torch_tar(dims=(1 << 50,), strides=(0,)), "2^50 elements, stride 0"
    yield "storage-missing", "missing-storage", torch_tar(entry=(2, 77, cls("FloatTensor"))), "tensor names storage 77"
    yield "tensor-missing", "missing-storage", torch_tar(root={"weight": persistent("77")}), "object names tensor 77"
    yield ("tensor-pid-junk", "refused-any", torch_tar(root={"weight": persistent("seven")}),
           "persistent id is not a number")
    yield "type-unknown", "bad-dtype", torch_tar(store=(1, "cpu", cls("Float3Storage"))), "torch.Float3Storage"
    yield "store-short", "type-mismatch", torch_tar(store=(1, "cpu")), "storage entry of two items"
    yield "view-beyond", "offset-out-of-range", torch_tar(views=[(3, 1, 2, 4)]), "view of 4 elements from offset 2 of 4"
    yield "view-root", "missing-storage", torch_tar(views=[(3, 99, 0, 1)]), "view of a storage that does not exist"
    yield ("storages-cut", "truncated", tar.archive(members[0], members[1],
           tar.member(b"storages", parts["storages"][:-20]), members[3]), "storages member too short")
    yield ("storages-tail", "trailing-data", tar.archive(members[0], members[1],
           tar.member(b"storages", parts["storages"] + b"tail"), members[3]), "bytes behind the storages")
    yield ("pickle-tail", "trailing-data", tar.archive(members[0], tar.member(b"pickle", parts["pickle"] + b"tail"),
           members[2], members[3]), "bytes behind the object's STOP")
    store = parts["storages"]
    rest = [members[0], members[1], members[3]]
    yield ("pax-size-less", "bad-tar", tar.archive(*rest, tar.pax(size=b"10"), members[2]),
           "PAX size smaller than the header's")
    yield ("pax-size-more", "bad-tar", tar.archive(*rest, tar.pax(size=b"99999"), members[2]),
           "PAX size larger than the header's")
    yield ("pax-hides", "bad-tar", tar.archive(*rest, tar.pax(size=b"%d" % (len(store) + 1024)), members[2],
           tar.member(b"storages", store)), "PAX size swallows the next member")
    yield ("pax-junk", "bad-tar", tar.archive(*rest, tar.pax_raw(b"999 size=1\n"), members[2]),
           "PAX record length is a lie")
    yield ("pax-no-number", "bad-tar", tar.archive(*rest, tar.pax_raw(b"size=1\n"), members[2]),
           "PAX record without length")
    yield ("symlink", "bad-tar", tar.archive(*rest, tar.header(b"storages", 0, kind=b"2", link=b"pickle")),
           "storages is a symbolic link")
    yield ("symlink-out", "bad-tar", tar.archive(*rest, tar.header(b"storages", 0, kind=b"2", link=b"../../outside")),
           "storages is a symbolic link that leads outside")
    yield ("hardlink", "bad-tar", tar.archive(*rest, tar.header(b"storages", 0, kind=b"1", link=b"pickle")),
           "storages is a hard link")
    yield "device", "bad-tar", tar.archive(*rest, tar.header(b"storages", 0, kind=b"3")), "storages is a device"
    yield "fifo", "bad-tar", tar.archive(*rest, tar.header(b"storages", 0, kind=b"6")), "storages is a FIFO"
    yield ("sparse-kind", "bad-tar", tar.archive(*rest, tar.member(b"storages", store, kind=b"S")),
           "storages is a GNU sparse file")
    yield "name-dotdot", "path-escape", tar.archive(*members, tar.member(b"../outside", b"x")), ".. in a member name"
    yield "name-absolute", "path-escape", tar.archive(*members, tar.member(b"/outside", b"x")), "absolute member name"
    yield ("name-prefix", "path-escape", tar.archive(*members, tar.member(b"outside", b"x", prefix=b"..")),
           ".. in the prefix field")
    yield ("name-gnu", "path-escape", tar.archive(*members, tar.gnu_long_name(b"../" * 50 + b"outside"),
           tar.member(b"x", b"x")), ".. in a GNU long name")
    yield ("duplicate", "duplicate-entry", tar.archive(*members, tar.member(b"pickle", pickle({"a": 1}))),
           "pickle member twice")
    yield ("checksum", "bad-tar", tar.archive(members[0], members[1], members[2],
           tar.member(b"tensors", parts["tensors"], checksum=b"000000\0 ")), "wrong header checksum")
    yield ("size-junk", "bad-tar", tar.archive(*rest, tar.member(b"storages", store, size_field=b"zzzzzzzzzzz\0")),
           "size field of letters")
    yield ("size-base256", "bad-tar", tar.archive(*rest, tar.member(b"storages", store, size_field=b"\xff" * 12)),
           "negative binary size")
    yield ("size-huge", "truncated", tar.archive(*rest,
           tar.member(b"storages", store, size_field=tar.base256(1 << 60))), "binary size of 2^60")
    yield ("size-wraps", "refused-any", tar.archive(*rest,
           tar.member(b"storages", store, size_field=tar.base256(2**64 - 512))),
           "binary size that wraps with the offset")
    yield "missing-pickle", "refused-any", tar.archive(members[0], members[2], members[3]), "no pickle member"
    yield "missing-storages", "refused-any", tar.archive(*rest), "no storages member"
    yield "not-torch", "unknown-format", tar.archive(tar.member(b"README", b"hello")), "a tar of something else"
    whole = tar.archive(*members)
    starts = [0]
    for one in members:
        starts.append(starts[-1] + len(one))
    yield "cut-header", "truncated", whole[:starts[2] + 100], "cut inside a member header"
    yield "cut-member", "truncated", whole[:starts[2] + 540], "cut inside a member"
    yield "cut-last", "truncated", whole[:starts[3] + 520], "cut inside the last member"


def samples():
    for name, say, data, text in legacy_rows():
        yield Sample("legacy-" + name, "pth", say, "legal" if say == "ok" else "legacy", text, bytes(data))
    for name, data, text in legacy_cuts():
        yield Sample("cut-legacy-" + name, "pth", "truncated", "cut", text, bytes(data))
    for name, say, data, text in tar_rows():
        yield Sample("tar-" + name, "tar", say, "tar", text, bytes(data))
    # A legacy tensor header whose counts are read as one 8-byte number by careless readers.
    crooked = tar_parts()
    crooked["tensors"] = crooked["tensors"].replace(struct.pack("<i4x", 1), struct.pack("<iI", 1, 0xFFFFFFFF), 1)
    yield Sample("tar-ndim-padding", "tar", "ok", "legal", "junk in the four unused bytes behind ndim",
                 bytes(torch_tar(crooked)))
    empty = legacy({"epoch": 1}, keys=[], blobs=[])
    yield Sample("legacy-no-tensors", "pth", "ok", "legal", "legacy file without any storage", empty)
