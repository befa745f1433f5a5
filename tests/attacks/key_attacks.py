"""Storages and tensors under keys that are one thing here and two in Python, and what lies in old archives beside the object.

Python's dicts tell 1 from "1" (and not 1 from True); int() reads many spellings of a number; a tar holds whatever was put there.
"""
import itertools
import struct

import tar_forge as tar
from pickle_asm import EMPTY_DICT, MARK, SETITEMS, code, glob, persistent, pickle, val
from torch_parts import (ECHO, FLOATS, Sample, cls, legacy, legacy_storage, longs, storage, tar_parts, tensor,
                         torch_tar, torch_zip)

KEYS = {"text": "1", "number": 1, "true": True, "bytes": b"1", "padded": "01", "signed": "+1", "spaced": " 1", "lined": "0_1"}
OTHER = struct.pack("<4f", 9.0, 8.0, 7.0, 6.0)


def rows_mixed():
    """(name, extension, text, data): two keys that only differ in their kind or their spelling."""
    for (first, a), (second, b) in itertools.permutations(KEYS.items(), 2):
        if first in ("true", "bytes") or {first, second} <= {"text", "padded", "signed", "spaced", "lined"}:
            continue                                    # refused alone; texts that differ are different keys to all
        what = "keys %r and %r" % (a, b)
        names = {"1": FLOATS} if a in ("1", 1) else {"1": FLOATS, str(a): OTHER}
        yield ("zip-%s-%s" % (first, second), "pt", what,
               torch_zip(val({"a": tensor(storage(a)), "b": tensor(storage(b))}), names, 3))
        for which, keys in {"both": [a, b], "first": [a], "second": [b]}.items():
            root = {"a": tensor(legacy_storage(a)), "b": tensor(legacy_storage(b))}
            yield ("legacy-%s-%s-%s" % (first, second, which), "pth", what + ", listed %r" % keys,
                   legacy(val(root), keys, [longs(4) + FLOATS, longs(4) + OTHER][:len(keys)], version=3))
    for name, key in KEYS.items():
        if name == "text":
            continue
        yield "legacy-list-" + name, "pth", "storage '1', listed as %r" % (key,), legacy(val({"a": tensor(legacy_storage("1"))}), [key], version=3)


def two_storages(key):
    store = pickle(2) + pickle((1, "cpu", cls("FloatStorage"))) + longs(4) + FLOATS
    store += pickle((key, "cpu", cls("FloatStorage")), 3) + longs(4) + OTHER + pickle([])
    return {**tar_parts(), "storages": store}


def two_tensors(key):
    one = struct.pack("<i4x", 1) + longs(4) + longs(1) + longs(0)
    tens = pickle(2) + pickle((2, 1, cls("FloatTensor"))) + one + pickle((key, 1, cls("FloatTensor")), 3)
    return {**tar_parts(), "tensors": tens + struct.pack("<i4x", 1) + longs(4) + longs(0) + longs(1)}


def rows_tar():
    for name, key in KEYS.items():
        yield "tar-storage-" + name, "a second storage with the key %r" % (key,), torch_tar(two_storages(key))
        if name != "number":
            yield "tar-one-" + name, "the only storage has the key %r" % (key,), torch_tar(store=(key, "cpu", cls("FloatStorage")))
    for key in ("2", 2, True, b"2", "02"):
        yield "tar-tensor-%s-%d" % (type(key).__name__, len(str(key))), "a second tensor with the key %r" % (key,), torch_tar(two_tensors(key))
    yield "tar-view-key", "a view with the key of its storage", torch_tar(views=[(1, 1, 0, 4)])
    for name, spelling in {"spaced": " 2", "plus": "+2", "zero": "02", "line": "0_2", "wide": "\uff12", "float": 2.0, "true": True}.items():
        yield "tar-id-" + name, "the object names the tensor as %r" % (spelling,), torch_tar(root={"weight": persistent(spelling)})
    yield ("tar-id-class", "a class with its source", torch_tar(root={"weight": persistent("2"), "c": persistent((cls("Size"), "f.py", "source"))}))
    for name, location in {"meta": "meta", "none": None, "xla": "xla:0", "number": 7}.items():
        yield "tar-location-" + name, "a storage at %r" % (location,), torch_tar(store=(1, location, cls("FloatStorage")))
    evil = b"cposix\nsystem\n(S'" + ECHO.encode() + b"'\ntR."
    for name, place in {"first": 0, "last": 4}.items():
        for what, member in {"pickle": tar.member(b"model.pkl", evil), "text": tar.member(b"notes", b"x"), "twin": tar.member(b"sub/pickle", evil)}.items():
            members = [tar.member(part.encode(), data) for part, data in tar_parts().items()]
            members.insert(place, member)
            yield "tar-beside-%s-%s" % (what, name), "a member that the object does not name", tar.archive(*members)


def rows_named():
    """torch.save numbers storages; other loaders of archives find what they run by its name."""
    names = ("aotinductor/model/x.so", "aotinductor/model/x.cpp", "weights/x.pt", "x.py", "x/__init__.py", "__main__.py", "constants.pkl", "0.npy", "0x", "-1",
             "a", "1a", "sample_inputs/model.pt", "\u0661", "0/0", "../constants.pkl")
    for number, name in enumerate(names):
        root = val({"a": tensor(storage(name)), "b": tensor(storage("0"))})
        yield "named-%d" % number, "a storage called %r" % name, torch_zip(root, {name: FLOATS, "0": OTHER}, 3)


def samples():
    names = [("torch", "UntypedStorage"), ("torch.storage", "UntypedStorage"), ("torch", "_UntypedStorage"), ("torch.storage", "_UntypedStorage"),
             ("torch", "TypedStorage"), ("torch.storage", "TypedStorage"), ("torch.storage", "_TypedStorage")]
    for number, (one, other) in enumerate(itertools.permutations(names, 2)):
        root = code(EMPTY_DICT, MARK, glob(*one), val(1), glob(*other), val(2), SETITEMS)
        yield Sample("key-classes-%d" % number, "pkl", "not-clean", "trust", "%s.%s and %s.%s as keys, which may be one class" % (*one, *other), pickle(root, 2))
    for name, text, data in rows_named():
        yield Sample("key-" + name, "pt", "not-clean", "trust", text, data)
    for name, extension, text, data in rows_mixed():
        yield Sample("key-" + name, extension, "not-clean", "trust", text, data)
    for name, text, data in rows_tar():
        yield Sample("key-" + name, "tar", "not-clean", "trust", text, data)
    yield Sample("legal-keys-of-numbers", "pt", "ok", "legal", "keys of storages that are all numbers", torch_zip(val({"a": tensor(storage(0)), "b": tensor(storage(1))}), {"0": FLOATS, "1": OTHER}))
    empty = [tar.member(part.encode(), data) for part, data in tar_parts().items()] + [tar.member(b"empty", b"")]
    yield Sample("legal-tar-empty-member", "tar", "ok", "legal", "an empty member beside the object", tar.archive(*empty))
