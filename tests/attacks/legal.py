"""Odd files that are legal: a reader that refuses these is only timid."""
import struct

import zip_forge as zf
from pickle_asm import (ADDITEMS, APPEND, APPENDS, BUILD, EMPTY_DICT, EMPTY_LIST, EMPTY_SET, MARK, MEMOIZE, POP,
                        SETITEM, SETITEMS, STOP, TUPLE1, TUPLE2, call, code, frame, get, glob, inst, latin1_bytes,
                        new, obj, persistent, pickle, proto, put, py2_str, short_str, stack_glob, tuple_of, val)
from torch_parts import (FLOATS, ORDERED_DICT, SYS_INFO, Sample, cls, entries, layout, legacy, legacy_storage,
                         legacy_tensor, longs, nested_bytes, parameter, qtensor, record, script_module, script_zip,
                         sparse, storage, tar_parts, tensor, tensor_v3, torch_tar, torch_zip)

PLAIN = pickle({"weight": tensor()})
NET = glob("mynet.models", "Net")


def graphs():
    """Object graphs, in a zip beside nothing else; (name, version, root, text)."""
    yield ("cycle-list", 2, code(EMPTY_LIST, put(0), MARK, get(0), tensor(), APPENDS),
           "a list that contains itself and a tensor")
    yield ("cycle-dict", 2, code(EMPTY_DICT, put(0), MARK, val("self"), get(0), val("weight"), tensor(), SETITEMS),
           "a dict that contains itself and a tensor")
    inner = code(EMPTY_DICT, put(1), val("up"), get(0), SETITEM, val("weight"), tensor(), SETITEM)
    yield "cycle-two", 2, code(EMPTY_LIST, put(0), inner, APPEND), "list and dict that contain each other"
    yield ("cycle-tuple", 2, code(EMPTY_LIST, put(0), MARK, get(0), TUPLE1, put(1), tensor(), APPENDS),
           "a tuple inside the list it holds")
    yield ("cycle-object", 2, val({"weight": tensor(), "m": code(new(NET), put(0), val({"me": get(0)}), BUILD)}),
           "an object whose state holds the object")
    shared = code(val({"weight": tensor()}), put(0))
    yield "shared-dict", 2, val({"model": shared, "ema": get(0)}), "one dict under two names"
    late = code(EMPTY_DICT, put(0), POP, val({"model": get(0)}), get(0), val("weight"), tensor(), SETITEM, POP)
    yield "filled-later", 2, late, "a dict that is filled after it was used"
    yield "long1-255", 2, val({"weight": tensor(), "n": code(b"\x8a\xff" + b"\x7f" * 255)}), "an integer of 255 bytes"
    yield "long1-0", 2, val({"weight": tensor(), "n": code(b"\x8a\x00")}), "an integer of no bytes, which is 0"
    yield "long1-70", 2, val({"weight": tensor(), "n": -(1 << 70)}), "an integer of 71 bits, negative"
    yield ("unknown-class", 2, val({"weight": tensor(), "m": code(new(NET), val({"a": 1}), BUILD)}),
           "an object of an unknown class")
    yield ("unknown-call", 2, val({"weight": tensor(), "m": call(glob("mynet.util", "make"), 1, "x")}),
           "a call of an unknown function")
    yield "unknown-inst", 2, val({"weight": tensor(), "m": inst("mynet", "Net", 1)}), "INST of an unknown class"
    yield "unknown-obj", 2, val({"weight": tensor(), "m": obj(NET, 1)}), "OBJ of an unknown class"
    yield ("unknown-newobj-ex", 4, val({"weight": tensor(),
           "m": code(stack_glob("mynet", "Net"), val((1,)), val({"k": 2}), b"\x92")}), "NEWOBJ_EX with keywords")
    yield ("dict-subclass", 2, val({"weight": tensor(),
           "c": code(new(glob("mynet", "Config")), val("lr"), val(0.1), SETITEM)}), "items of a dict subclass")
    yield ("list-subclass", 2, val({"weight": tensor(),
           "c": code(new(glob("mynet", "Items")), MARK, val(1), val(2), APPENDS)}), "items of a list subclass")
    yield ("state-slots", 2, val({"weight": tensor(), "m": code(new(NET), val((None, {"a": 1})), BUILD)}),
           "state with slots")
    yield ("state-odd", 2, val({"weight": tensor(), "m": code(new(NET), val("any value"), BUILD)}),
           "state that is a string, for a custom __setstate__")
    yield ("enum-getattr", 2, val({"weight": tensor(),
           "e": call(glob("builtins", "getattr"), glob("mynet", "Color"), "RED")}), "enum member by builtins.getattr")
    yield "enum-call", 2, val({"weight": tensor(), "e": call(glob("mynet", "Color"), 1)}), "enum member by its value"
    yield ("nested-class", 4, val({"weight": tensor(), "m": call(stack_glob("mynet", "Outer.Inner"))}),
           "a nested class by a dotted name")
    yield ("lookalike", 2, val({"weight": tensor(), "m": [new(glob("os_utils", "system")),
           new(glob("mynet.os", "Head")), new(glob("evaluate", "eval"))]}),
           "innocent modules whose names only look dangerous")
    yield ("words", 2, val({"weight": tensor(), "notes": ["posix", "system", "eval", "cposix\nsystem\n(S'x'\ntR."]}),
           "dangerous words as plain text")
    yield ("pickle-in-bytes", 3, val({"weight": tensor(), "b": bytes(pickle(call(glob("posix", "system"), "x")))}),
           "a pickle with a call, as a bytes value nobody loads")
    yield "bytes-latin1", 2, val({"weight": tensor(), "b": latin1_bytes(b"\x00\xff\x80")}), "bytes by _codecs.encode"
    yield ("bytearray8", 5, val({"weight": tensor(), "b": code(b"\x96", struct.pack("<Q", 3), b"abc")}),
           "protocol 5 bytearray")
    yield "set", 4, val({"weight": tensor(), "s": code(EMPTY_SET, MARK, val(1), val("a"), ADDITEMS)}), "a set"
    yield ("odd-keys", 2, val({"weight": tensor(), 5: 1, None: 2, (1, "a"): 3, 2.5: 4, True: 5}),
           "dict keys of every hashable kind")
    yield ("py2-strings", 2, val({py2_str("weight"): tensor(), py2_str(b"\xff\xfe"): 1}),
           "Python 2 strings, one not UTF-8")
    yield ("text-opcodes", 2, val({"weight": tensor(),
           "t": [code(b"I42\n"), code(b"I01\n"), code(b"L7L\n"), code(b"F1.5\n"), code(b"S'a'\n"),
           code(b"V\\u00e9\n")]}), "text opcodes of protocol 0")
    yield "deep-60", 2, val({"weight": tensor(), "d": code(EMPTY_LIST * 60, APPEND * 59)}), "60 levels"
    yield "memo-text", 2, val({"weight": tensor(), "l": [code(EMPTY_LIST, b"p0\n"), code(b"g0\n")]}), "text PUT and GET"
    yield ("many-aliases", 2, val({"weights": code(tensor(), put(0), POP, val([get(0)] * 100000))}),
           "100,000 names for one tensor")
    yield "many-dicts", 2, val({"weight": tensor(), "l": [EMPTY_DICT] * 300000}), "300,000 empty dicts"
    yield "empty-root", 2, val({}), "an empty state dict"


def tensors():
    """(name, root, storages, text)"""
    yield "expanded", tensor(size=(8, 4), stride=(0, 1)), None, "4 floats expanded to 8 rows"
    yield "transposed", tensor(size=(2, 2), stride=(1, 2)), None, "a transposed view"
    yield "odd-stride", tensor(size=(1, 4), stride=(1 << 40, 1)), None, "stride 2^40 on a dimension of size 1"
    yield "empty-tensor", tensor(offset=4, size=(0,)), None, "empty tensor at the very end of its storage"
    yield "empty-shape", tensor(size=(0, 5), stride=(5, 1)), None, "shape [0, 5]"
    yield "empty-storage", tensor(storage(numel=0), size=(0,)), {"0": b""}, "storage of no elements"
    yield "scalar", tensor(size=(), stride=()), None, "rank 0"
    yield ("meta-huge", val({"w": tensor(), "m": call(glob("torch._utils", "_rebuild_meta_tensor_no_storage"),
           cls("float32"), (1 << 20, 1 << 20), (1 << 20, 1), False)}), None,
           "meta tensor of 2^40 elements, shape only")
    yield ("wrapper", val({"w": tensor(), "m": call(glob("torch._utils", "_rebuild_wrapper_subclass"),
           glob("mynet", "Sub"), cls("float32"), (4,), (1,), 0, cls("strided"), "cpu", False)}), None,
           "wrapper subclass without data")
    yield ("float8", tensor_v3(storage(kind=cls("UntypedStorage", "torch.storage"), numel=16), 0, (16,), (1,)), None,
           "float8 over an untyped storage")
    yield ("quantized", qtensor((2, 2), (2, 1), (glob("torch", "per_tensor_affine"), 0.5, 0)), {"0": b"\1\2\3\4"},
           "per-tensor quantized")
    index = tensor(storage("1", "LongStorage", 4), size=(1, 4), stride=(4, 1))
    yield "sparse", sparse(index, tensor(), (9,)), {"0": FLOATS, "1": longs(0, 2, 4, 8)}, "sparse COO"
    yield ("key-pointer", tensor(storage("94513286471232")), {"94513286471232": FLOATS},
           "storage key that is an old pointer value")
    yield "key-word", tensor(storage("weights")), {"weights": FLOATS}, "storage key that is a word"
    yield "device", tensor(storage(location="cuda:7")), None, "storage of a CUDA device"
    yield "device-odd", tensor(storage(location="weirdchip:0")), None, "storage of a device nobody knows"
    yield "parameter", parameter(tensor()), None, "a parameter"
    yield "layout", val({"w": tensor(), "l": layout("strided")}), None, "a layout object"
    yield "size-object", val({"w": tensor(size=call(glob("torch", "Size"), (4,)))}), None, "sizes given as torch.Size"
    yield ("from-type-unknown", val({"w": tensor(), "x": call(glob("torch._tensor", "_rebuild_from_type_v2"),
           glob("mynet", "rebuild"), glob("mynet", "Sub"), (1,), {})}), None,
           "subclass rebuilt by an unknown function")


def zips():
    base = entries(PLAIN)
    yield "tail", zf.build(base, tail=b"\0" * 100), "zeros behind the end record"
    yield "tail-text", zf.build(base, tail=b"-----BEGIN SIGNATURE-----\n"), "text behind the end record"
    yield "comment", zf.build(base, comment=b"made by hand"), "archive comment"
    yield "no-zip64", zf.build(base, zip64=False), "no zip64 end records"
    yield ("crc-zero", zf.build([zf.Entry(e.name, e.plain, crc=0) for e in base]),
           "CRC 0 everywhere, that is, not computed")
    yield "deflated", zf.build([zf.deflated(e.name, e.plain) for e in base]), "everything deflated"
    yield ("rezipped", zf.build([zf.deflated(e.name, e.plain, flags=0, align=False) for e in reversed(base)]),
           "zipped again: no descriptors, no padding, other order")
    yield ("folders", zf.build([zf.Entry(b"archive/", flags=0), zf.Entry(b"archive/data/", flags=0)] + base),
           "entries for the folders")
    yield "prefix-spaces", zf.build(entries(PLAIN, prefix=b"my model (1) final")), "prefix with spaces"
    yield "prefix-utf8", zf.build(entries(PLAIN, prefix="modèle-模型".encode())), "prefix in UTF-8"
    yield "prefix-dots", zf.build(entries(PLAIN, prefix=b"v1.0..final")), "prefix with two dots inside a word"
    yield ("extra-records", zf.build(entries(PLAIN, extra=[record(b".data/serialization_id", b"0" * 40),
           record(b"extra/notes.txt", b"hello")])), "records nobody asked for")
    yield "no-byteorder", zf.build(entries(PLAIN, byteorder=None)), "no byteorder record"
    yield ("big-endian", zf.build(entries(PLAIN, {"0": struct.pack(">4f", 1, 2, 3, 4)}, byteorder=b"big")),
           "big-endian storages")
    yield ("many-records", zf.build(entries(PLAIN, extra=[record(b"extra/%05d" % i, b"x",
           align=False) for i in range(10000)])), "10,000 extra records")
    ustar = zf.Entry(b"archive/aaa", b"\0" * 300, align=False)
    ustar.plain = bytes(257 - 30 - len(ustar.name)) + b"ustar\x0000" + bytes(200)
    yield "ustar-inside", zf.build([ustar] + base), "the tar magic at byte 257 of a zip"


def streams():
    say = {"weight": legacy_tensor()}
    yield "legacy-protocol-4", "pth", legacy(version=4), "legacy stream in protocol 4"
    framed = [code(proto(4), frame(code(val(part), STOP))) for part in (0x1950A86A20F9469CFC6C, 1001, SYS_INFO, say,
        ["0"])]
    yield "legacy-framed", "pth", b"".join(framed) + longs(4) + FLOATS, "legacy stream in framed protocol 4"
    yield "legacy-twice", "pth", legacy() + legacy(), "two legacy streams, one behind the other"
    yield ("legacy-view", "pth", legacy({"w": tensor(legacy_storage(view=("1", 1, 3)), size=(3,))}),
           "storage view of three elements")
    yield ("nested", "pkl", pickle({"w": tensor(nested_bytes(legacy(legacy_storage(), version=3)))}, 3),
           "plain pickle with a tensor by _load_from_bytes")
    yield "tar", "tar", torch_tar(), "a torch 0.1 tar"
    yield "tar-named-tar", "pth.tar", torch_zip({"weight": tensor()}), "a torch zip named .pth.tar"
    yield ("tar-container", "tar", torch_tar(tar_parts(root={"weight": persistent("2"),
           "m": persistent((NET, "net.py", "source"))})), "container class in a tar")
    yield ("script", "pt", script_zip(script_module({"weight": tensor(),
           "n": call(glob("torch.jit._pickle", "build_intlist"), [1, 2])})), "a TorchScript archive")
    parts = code(call(NET, 1), val({"lr": 0.5}), BUILD)
    yield ("frame-one", "pkl", code(proto(4), frame(code(val({"a": 1, "m": parts}), STOP))),
           "one FRAME around everything")
    yield ("frame-many", "pkl", code(proto(4), frame(code(EMPTY_LIST, MEMOIZE, MARK)), frame(code(val(1), val("x"))),
           frame(code(APPENDS, STOP))), "three FRAMEs")
    big = code(b"B", struct.pack("<I", 70000), b"x" * 70000)
    yield ("frame-between", "pkl", code(proto(4), frame(code(EMPTY_LIST)), big, frame(code(APPEND, STOP))),
           "a large value between two FRAMEs")
    yield "frame-none", "pkl", pickle({"a": short_str("x")}, 4), "protocol 4 without FRAME"
    yield "protocol-0", "pkl", b"(dp0\nS'a'\np1\nI1\nsS'b'\np2\n(lp3\nF2.5\naNas.", "protocol 0 text pickle"
    yield "protocol-1", "pkl", code(b"}q\0(U\x01aq\x01K\x01U\x01b](K\x02K\x03eu."), "protocol 1, no PROTO"
    yield ("ordereddict", "pkl", pickle(code(ORDERED_DICT, MARK, val("a"), val(1), SETITEMS)),
           "bare pickle of an OrderedDict")
    yield "tuple-root", "pkl", pickle(code(val(1), tuple_of((2, 3)), TUPLE2)), "bare pickle of a tuple"


def samples():
    for name, version, root, text in graphs():
        yield Sample("ok-" + name, "pt", "ok", "legal", text, torch_zip(root, version=version))
    for name, root, records, text in tensors():
        yield Sample("ok-" + name, "pt", "ok", "legal", text, torch_zip({"weight": root}, records))
    for name, data, text in zips():
        yield Sample("ok-zip-" + name, "pt", "ok", "legal", text, data)
    yield Sample("ok-npz-empty", "npz", "ok", "legal", "only an end record: what NumPy writes for no arrays", zf.end_record(0, 0, 0))
    for name, ext, data, text in streams():
        yield Sample("ok-" + name, ext, "ok", "legal", text, bytes(data))
