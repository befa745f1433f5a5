#!/usr/bin/env python3
"""Files of about a megabyte that have one thing very often: python3 many.py OUTDIR [BYTES]

Beside make.py, whose files are small and have a code each: here any answer is right that comes in time linear in
the file and in the memory a file may take (scripts/check-hostile). The same bytes every time; nothing is loaded.
"""
import json
import struct
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import onnx_attacks as onnx
import tar_forge as tar
import zip_forge as zf
from pickle_asm import (APPENDS, BUILD, EMPTY_DICT, EMPTY_LIST, EMPTY_TUPLE, MARK, NEWOBJ, NONE, POP, REDUCE, SETITEMS,
                        call, code, get, glob, integer, pickle, put, short_str, stack_glob, tuple_of, val)
from torch_parts import (FLOATS, ORDERED_DICT, cls, layout, legacy, longs, record, script_module, sparse, storage,
                         tar_parts, tensor, torch_zip)

MEGABYTE = 1 << 20
REBUILD = glob("torch._utils", "_rebuild_tensor_v2")
BLOCK = glob("mynet.layers", "Block")


def aside(slot, thing):
    """The value in a memo slot, and not on the stack."""
    return code(val(thing), put(slot), POP)


def listed(items):
    return code(EMPTY_LIST, MARK, *items, APPENDS)


def mapped(pairs):
    return code(EMPTY_DICT, MARK, *pairs, SETITEMS)


# Slots 1 and 2: a tensor is b"h\1h\2R" from then on.
TENSOR_PARTS = code(aside(1, REBUILD), aside(2, (storage(), 0, (4,), (1,), False, ORDERED_DICT)))
TENSOR = code(get(1), get(2), REDUCE)


def named_tensors(names):
    return code(TENSOR_PARTS, mapped(code(val(name), TENSOR) for name in names))


def again(thing, count):
    """A list that refers to one value so often."""
    return code(aside(3, thing), EMPTY_LIST, MARK, get(3) * count, APPENDS)


def calls(function, arguments, count):
    """One call, made so often: each with five bytes."""
    return code(aside(3, function), aside(4, arguments), EMPTY_LIST, MARK, code(get(3), get(4), REDUCE) * count, APPENDS)


def values(size):
    """Objects that are no tensors."""
    yield "integer", again(code(b"\x8b", struct.pack("<i", 512), b"\x7f" * 512), size // 2)
    yield "integer-written", again(code(b"\x8a\xff", b"\x7f" * 255), size // 2)
    yield "text", again("é" * (size // 4), size // 4)
    yield "text-plain", again("x" * (size // 2), size // 4)
    yield "bytes", again(b"x" * (size // 2), size // 4)
    yield "tuple", again(tuple(range(size // 8)), size // 8)
    yield "none", listed([NONE * size])
    yield "lists", listed([EMPTY_LIST * size])
    yield "dicts", listed([EMPTY_DICT * size])
    yield "keys", mapped(code(integer(i), NONE) for i in range(size // 6))
    yield "text-keys", mapped(code(short_str("k%d" % i), NONE) for i in range(size // 9))
    yield "tuple-keys", mapped(code(tuple_of([i, i]), NONE) for i in range(size // 12))
    yield "key-shared", code(aside(3, "k" * (size // 4)), listed([code(EMPTY_DICT, get(3), NONE, b"s") * (size // 8)]))
    yield "tuple-key-shared", code(aside(3, tuple(range(size // 16))),
                                   listed([code(EMPTY_DICT, get(3), NONE, b"s") * (size // 8)]))
    yield "python2-text", listed([b"U\1\xff" * (size // 3)])
    yield "floats", listed([b"G" + struct.pack(">d", 1.5)] * (size // 9))
    yield "deep-lists", listed([EMPTY_LIST * 900 + b"a" * 899] * (size // 1800))
    deep = val([0] * (size // 8))
    for _ in range(400):
        deep = mapped([val("k" * (size // 2000)), deep])
    yield "long-paths", deep


def python(size):
    """Globals and calls."""
    yield "globals", listed(glob("m%d" % i, "n") for i in range(size // 10))
    yield "globals-called", listed(code(glob("m%d" % i, "n"), EMPTY_TUPLE, REDUCE) for i in range(size // 12))
    yield "dangers", listed(glob("os", "n%d" % i) for i in range(size // 11))
    yield "objects", code(aside(3, BLOCK), aside(4, ()), aside(5, {"a": 1}),
                          listed([code(get(3), get(4), NEWOBJ, get(5), BUILD) * (size // 8)]))
    yield "states", code(call(glob("collections", "OrderedDict")), put(3),
                         aside(4, {"k%d" % i: None for i in range(size // 40)}), code(get(4), BUILD) * (size // 6))
    yield "members", calls(glob("builtins", "getattr"), (glob("mynet", "Color"), "RED"), size // 6)
    yield "paths", calls(glob("pathlib", "Path"), ("a/" * (size // 16),), size // 6)
    yield "bytes-made", calls(glob("builtins", "bytes"), ([1] * (size // 16),), size // 6)
    yield "dicts-made", calls(glob("builtins", "dict"), ([(i, None) for i in range(size // 40)],), size // 6)
    yield "sets-made", calls(glob("builtins", "set"), (list(range(size // 16)),), size // 6)
    yield "lists-made", calls(glob("builtins", "list"), (list(range(size // 16)),), size // 6)
    yield "misfits", calls(cls("Size"), (1, 2), size // 6)
    yield "encoded", calls(glob("_codecs", "encode"), ("é" * (size // 16), "latin1"), size // 6)
    text = ("a\0\0\0" * (size // 32)).encode()
    dtype = call(glob("numpy", "dtype"), "U%d" % (size // 32), False, True)
    yield "numpy-text", code(aside(5, dtype), calls(glob("numpy.core.multiarray", "scalar"), (get(5), text), size // 6))


def tensors(size):
    """Tensors by name."""
    yield "tensors", named_tensors(range(size // 10))
    yield "tensors-list", code(TENSOR_PARTS, listed([TENSOR * (size // 5)]))
    yield "tensors-text", named_tensors("k%d" % i for i in range(size // 16))
    yield "tensors-fields", named_tensors("-%d" % i for i in range(size // 15))
    yield "tensors-types", named_tensors("-%d.block.w%d" % (i, i) for i in range(size // 30))
    yield "tensors-dots", named_tensors("%d" % i + ".a" * 59 for i in range(size // 135))
    yield "tensors-numbers", named_tensors("%d" % i + ".300" * 59 for i in range(size // 250))
    yield "tensors-gaps", named_tensors("a%d" % i + ".255" * 59 for i in range(size // 250))
    yield "tensors-long-names", named_tensors("x" * 60000 + "%d" % i for i in range(size // 60010))
    yield "tensors-tuples", named_tensors(tuple("%d" % i) for i in range(size // 40))
    yield "tensors-views", code(aside(3, storage(numel=4)), aside(1, REBUILD), aside(4, ORDERED_DICT), mapped(
        code(integer(i), get(1), tuple_of([get(3), i % 3, (1,), (1,), False, get(4)]), REDUCE) for i in range(size // 32)))
    # One dict of tensors below so many keys, as many as are taken: what is made of the names is bounded as well.
    for what, inside, count in (("dots", ["a" + ".a" * 250], 14000), ("numbers", ["0" + ".7" * 250], 14000),
                                ("pairs", ["a" + ".a" * 250 + end for end in (".x", ".y")], 7000),
                                ("odd", ["\1" * 250], 5000), ("short", ["%d.w" % i for i in range(250)], 380)):
        yield "tensors-shared-" + what, code(TENSOR_PARTS, aside(3, mapped(code(val(name), TENSOR) for name in inside)),
                                             mapped(code(short_str("%x" % i), get(3)) for i in range(count)))
    yield "tensors-tied", code(TENSOR_PARTS, aside(3, TENSOR), mapped(
        [val("x" * 60000), get(3)] + [code(short_str("%x" % i), get(3)) for i in range(size // 9)]))
    deep = TENSOR
    for i in range(900):
        deep = mapped([val("k" * 60), deep, val("t" + "x" * (size // 1000)), TENSOR])
    yield "tensors-deep", code(TENSOR_PARTS, deep)
    wide = mapped(code(short_str("%d" % i), TENSOR) for i in range(size // 12))
    yield "tensors-prefix", code(TENSOR_PARTS, mapped([val("p" * 1000), wide]))
    indices = tensor(storage("1", "LongStorage", 2), 0, (1, size // 16), (0, 0))
    shown = tensor(storage(), 0, (size // 16,), (0,))
    yield "sparse", calls(glob("torch._utils", "_rebuild_sparse_tensor"),
                          (layout("sparse_coo"), (indices, shown, call(cls("Size"), (10,)))), size // 16)
    yield "modules", code(TENSOR_PARTS, aside(3, BLOCK), aside(4, ()), aside(5, "_modules"), aside(6, "_parameters"), aside(
        7, "_buffers"), mapped(code(short_str("%d" % i), get(3), get(4), NEWOBJ, EMPTY_DICT, MARK, get(5), EMPTY_DICT, get(6),
                                    mapped([short_str("w"), TENSOR]), get(7), EMPTY_DICT, SETITEMS, BUILD)
                               for i in range(size // 40)))


def containers(size):
    """Zip entries, tar members, legacy storages, shards, npz members."""
    yield "zip-entries", "pt", torch_zip({"w": tensor()}, extra=[record(b"x%d" % i, b"") for i in range(size // 170)])
    yield "zip-strangers", "pt", torch_zip({"w": tensor()}, extra=[record(b"x%d" % i, b"?") for i in range(size // 230)])
    yield "zip-pickles", "pt", torch_zip({"w": tensor()}, extra=[record(b"x%d.pkl" % i, b"\x80\2N.") for i in range(size // 230)])
    scripts = [zf.deflated(b"archive/code/__torch__/m%d.py" % i, b"class A(Module):\n  x : int\n" * 20000)
               for i in range(size // 3000)]
    yield "zip-code", "pt", zf.build([record(b"data.pkl", pickle(script_module({"weight": tensor()}))), record(b"data/0", FLOATS),
                                      record(b"constants.pkl", pickle(()))] + scripts + [record(b"version", b"3\n")])
    keys = [str(i) for i in range(size // 280)]
    many = {key: tensor(storage(key)) for key in keys}
    yield "storages", "pt", torch_zip(many, {key: FLOATS for key in keys})
    yield "storages-legacy", "pth", legacy({key: tensor(storage(key, "FloatStorage", 4, "cpu", None)) for key in keys},
                                           keys, [longs(4) + FLOATS] * len(keys))
    parts = tar_parts()
    yield "tar-members", "pth", tar.archive(*[tar.member(name.encode(), data) for name, data in parts.items()],
                                            *[tar.member(b"x%d" % i, b"") for i in range(size // 512)])
    header = b"\x93NUMPY\1\0v\0" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }".ljust(117) + b"\n"
    yield "npz-members", "npz", zf.build([zf.Entry(b"a%d.npy" % i, header, align=False, flags=0) for i in range(size // 260)])
    yield "index", "index.json", json.dumps({"metadata": {}, "weight_map": {
        "w%d" % i: "model-%05d-of-99999.safetensors" % i for i in range(size // 50)}}).encode()


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def others(size):
    """Formats without pickles."""
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    yield "st-tensors", "safetensors", safetensors({"%d" % i: empty for i in range(size // 68)})
    yield "st-names", "safetensors", safetensors({"%d" % i + "x" * 1000: empty for i in range(size // 1070)})
    yield "st-more-dots", "safetensors", safetensors({"%d" % i + ".a" * 250: empty for i in range(size // 570)})
    yield "st-dots", "safetensors", safetensors({"%d" % i + ".a" * 59: empty for i in range(size // 190)})
    names = ["%06d" % i for i in range(size // 150)]
    for last, which in (("", "packed"), ("x", "packed-missing")):
        said = json.dumps({name: {"dtype": "F32", "shape": [1], "xxh3": "0" * 16} for name in [*names[:-1], names[-1] + last]}, separators=(",", ":"))
        yield "st-" + which, "safetensors", safetensors({"__metadata__": {"ballast.packed": said, "ballast.packed.version": "1"}} | {
            name: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for name in names})
    meta = b",".join(b'"%d":""' % i for i in range(size // 11))
    yield "st-metadata", "safetensors", safetensors(b'{"__metadata__":{' + meta + b"}}")
    yield "st-long-metadata", "safetensors", safetensors({"__metadata__": {"a": "é" * (size // 12), "b": "\1" * (size // 12)}})
    dims = {"w": {"dtype": "F32", "shape": [0] + [1] * (size // 3), "data_offsets": [0, 0]}}
    yield "st-dimensions", "safetensors", safetensors(dims)
    yield "onnx-tensors", "onnx", onnx.model(onnx.graph(*[onnx.tensor(onnx.raw(), "w%d" % i) for i in range(size // 38)]))
    props = b"".join(onnx.block(14, onnx.block(1, "k%d" % i) + onnx.block(2, "")) for i in range(size // 14))
    yield "onnx-metadata", "onnx", onnx.model(onnx.graph(onnx.tensor(onnx.raw())), props)
    nodes = b"".join(onnx.block(1, onnx.block(4, "Op%d" % i)) for i in range(size // 13))
    yield "onnx-operators", "onnx", onnx.model(onnx.graph(onnx.tensor(onnx.raw()), nodes=nodes))


def files(size=MEGABYTE):
    """(name, bytes) of every file."""
    storages = {"0": FLOATS, "1": longs(0, 0)}
    for group in (values, python, tensors):
        for name, body in group(size):
            yield "many-%s.pt" % name, torch_zip(body, storages)
    for group in (containers, others):
        for name, ext, data in group(size):
            yield "many-%s.%s" % (name, ext), data


def main(argv):
    if len(argv) not in (2, 3):
        print(__doc__.split("\n")[0], file=sys.stderr)
        return 2
    out = Path(argv[1])
    out.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, data in files(int(argv[2]) if len(argv) == 3 else MEGABYTE):
        (out / name).write_bytes(data)
        count += 1
    print("%d files in %s" % (count, out))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
