"""Things that Python has otherwise than they look: attributes in the place of methods, storages of two classes, bits that are set by
being there, hooks, numbers that are cast, records beside the object.

Each generator goes over an axis; none of it may be called clean. What can be compared with Python's own outcome is compared
there too (scripts/check-states).
"""
import struct

from numpy_attacks import RECONSTRUCT, array, dtype
from pickle_asm import BUILD, POP, SETITEM, call, code, get, glob, new, persistent, pickle, put, val
from torch_parts import (FLOATS, ORDERED_DICT, Sample, cls, layout, legacy, legacy_storage, longs, record, sparse, storage, tensor, tensor_v3,
                         torch_zip)

CALLABLE = glob("builtins", "list")
MAPPINGS = {"ordereddict": ("collections", "OrderedDict"), "counter": ("collections", "Counter")}
HOLDERS = {"namespace": ("argparse", "Namespace"), "simplenamespace": ("types", "SimpleNamespace"), **MAPPINGS}
METHODS = ("keys", "items", "get", "update", "__setstate__", "__class__", "__dict__", "__reduce_ex__", "__call__", "__anything__")
UNTYPED = cls("UntypedStorage", "torch.storage")


def rows_attributes():
    """The unpickler and later calls find an attribute before the method of the same name."""
    for holder, name in HOLDERS.items():
        made = call(glob(*name))
        for method in METHODS:
            for again in (False, True):
                body = code(made, val({method: CALLABLE}), BUILD, *[code(val({"lr": 7}), BUILD)] * again)
                yield "attribute-%s-%s-%d" % (holder, method, again), body, "a %s with an attribute %s that can be called" % (name[1], method)
        for method in ("__setstate__", "__class__", "__doc__"):
            yield ("attribute-%s-%s-data" % (holder, method), code(made, val({method: 5}), BUILD), "a %s with an attribute %s" % (name[1], method))
    for holder, name in MAPPINGS.items():
        shadowed = code(call(glob(*name)), val({"keys": CALLABLE}), BUILD)
        for target in (("builtins", "dict"), ("collections", "OrderedDict"), ("collections", "Counter")):
            yield ("keys-%s-%s" % (holder, target[1].lower()), call(glob(*target), shadowed), "%s() asks a %s for its keys" % (target[1], name[1]))


def rows_quantized():
    for name, hooks, fill in (("now", {0: CALLABLE}, b""), ("later", code(val({}), put(5)), code(get(5), val(0), CALLABLE, SETITEM, POP))):
        body = call(glob("torch._utils", "_rebuild_qtensor"), storage("0", "QInt8Storage", 4), 0, (4,), (1,), (glob("torch", "per_tensor_affine"), 0.5, 1),
                    False, hooks)
        yield "hooks-qtensor-" + name, "pt", torch_zip(val({"w": code(body, fill)}), {"0": b"\1\2\3\4"}), "hooks of a quantized tensor"


def rows_sparse():
    """PyTorch's to_dense() goes by the first stride of the values of a tensor with dense dimensions, also where there is one value alone."""
    indices = tensor(storage("1", "LongStorage", 2), size=(2, 1), stride=(1, 1))
    for stride in (0, 1, 3, 8, 1 << 40):
        for bits in ((), ({"neg": True},)):
            values = call(glob("torch._utils", "_rebuild_tensor_v2"), storage(), 0, (1, 2), (stride, 1), False, ORDERED_DICT, *bits)
            body = val({"w": sparse(indices, values, (2, 3, 2))})
            yield ("sparse-stride-%d%s" % (stride, "-neg" if bits else ""), "pt", torch_zip(body, {"0": FLOATS, "1": longs(0, 1)}),
                   "one sparse value of two numbers whose stride is %d" % stride)
    rows = tensor(storage("1", "LongStorage", 4), size=(1, 4), stride=(4, 1))
    for name, numbers in (("twice", (0, 1, 1, 2)), ("order", (0, 2, 1, 3))):
        body = call(glob("torch._utils", "_rebuild_sparse_tensor"), layout("sparse_coo"), (rows, tensor(), (4,), True))
        yield ("sparse-coalesced-" + name, "pt", torch_zip(val({"w": body}), {"0": FLOATS, "1": longs(*numbers)}),
               "sparse indices %r that are said to be coalesced" % (numbers,))
    pointers, columns = tensor(storage("1", "LongStorage", 2), size=(2,)), tensor(storage("1", "LongStorage", 2), size=(1,))
    for stride in (0, 1, 3, 5):
        block = tensor(storage(), size=(1, 1, 2), stride=(stride, stride, 1))
        body = call(glob("torch._utils", "_rebuild_sparse_tensor"), layout("sparse_bsr"), (pointers, columns, block, (1, 2)))
        yield ("sparse-block-stride-%d" % stride, "pt", torch_zip(val({"w": body}), {"0": FLOATS, "1": longs(0, 1)}), "one block whose strides are %d" % stride)
    for form in ("f4", "f8"):  # an array of NumPy in column-major order
        made = code(RECONSTRUCT, val((1, (1, 2), dtype(form), True, bytes(int(form[1]) * 2))), BUILD)
        cast = call(glob("torch._utils", "_rebuild_device_tensor_from_numpy"), made, cls("float32"), "cpu", False)
        yield ("sparse-column-major-" + form, "pt", torch_zip(val({"w": sparse(indices, cast, (2, 3, 2))}), {"1": longs(0, 1)}, 3),
               "one sparse value of two numbers in column-major order")


def rows_copied():
    """In a legacy stream the numbers come behind the pickle: of what a call copies, PyTorch has what lay in memory."""
    held = {"0": FLOATS, "1": struct.pack("<4i", 0, 1, 2, 3)}
    ints = tensor(legacy_storage("1", "IntStorage", 4), size=(1, 4), stride=(4, 1))
    yield "indices", sparse(ints, tensor(legacy_storage()), (4,)), held, {"0": 4, "1": 4}, "sparse indices of 32 bits, which become 64"
    for device in ("cuda:0", "cpu:0", "mps"):
        yield ("device-" + device.replace(":", "-"), call(glob("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"), tensor(legacy_storage()), cls("float32"),
               device, False), {"0": FLOATS}, {"0": 4}, "a tensor that is brought to %s" % device)
    quantized = legacy_storage("0", "QInt8Storage", 2)
    right = {"FloatStorage": struct.pack("<4f", 1, 2, 3, 4), "DoubleStorage": struct.pack("<4d", 1, 2, 3, 4), "LongStorage": longs(0, 1, 2, 3),
             "IntStorage": struct.pack("<4i", 0, 1, 2, 3)}
    for scales, points, step in (("FloatStorage", "LongStorage", 1), ("DoubleStorage", "IntStorage", 1), ("DoubleStorage", "FloatStorage", 1),
                                 ("FloatStorage", "DoubleStorage", 1), ("DoubleStorage", "LongStorage", 2), ("FloatStorage", "FloatStorage", 2)):
        params = (glob("torch", "per_channel_affine"), tensor(legacy_storage("1", scales, 4), size=(2,), stride=(step,)),
                  tensor(legacy_storage("2", points, 4), size=(2,), stride=(step,)), 0)
        yield ("channels-%s-%s-%d" % (scales[:-7].lower(), points[:-7].lower(), step),
               call(glob("torch._utils", "_rebuild_qtensor"), quantized, 0, (2,), (1,), params, False, ORDERED_DICT),
               {"0": b"\1\2", "1": right[scales], "2": right[points]}, {"0": 2, "1": 4, "2": 4}, "scales and zero points of channels that PyTorch copies")


def rows_parameters():
    hooks = {0: CALLABLE}
    parameter = glob("torch.nn.parameter", "Parameter")
    for name, value in (("_backward_hooks", hooks), ("_grad", tensor(storage("1"))), ("grad", tensor(storage("1"))), ("__class__", CALLABLE),
                        ("data", tensor(storage("1"))), ("requires_grad", True), ("tolist", CALLABLE), ("shape", CALLABLE), ("_version", 3),
                        ("__setstate__", 1), ("names", ("a",)), ("volatile", 1)):
        for how in ("state", "type", "type2"):
            body = (call(glob("torch._utils", "_rebuild_parameter_with_state"), tensor(), False, ORDERED_DICT, {name: value}) if how == "state"
                    else call(glob("torch._tensor", "_rebuild_from_type" + ("_v2" if how == "type2" else "")),
                              glob("torch._utils", "_rebuild_tensor_v2"), parameter, (storage(), 0, (4,), (1,), False, ORDERED_DICT), {name: value}))
            yield "parameter-%s-%s" % (how, name), body, "a tensor whose attribute %s is set" % name
    for where, args in (("parameter", ("_rebuild_parameter", tensor(), True, hooks)),
                        ("state", ("_rebuild_parameter_with_state", tensor(), True, hooks, {})),
                        ("tensor", ("_rebuild_tensor_v2", storage(), 0, (4,), (1,), False, hooks))):
        yield "hooks-" + where, call(glob("torch._utils", args[0]), *args[1:]), "hooks by %s" % args[0]
    # The tensor keeps the dict, which is filled when the call is over.
    later, fill = code(val({}), put(5)), code(get(5), val(0), CALLABLE, SETITEM, POP)
    for where, made in (("tensor", call(glob("torch._utils", "_rebuild_tensor_v2"), storage(), 0, (4,), (1,), False, later)),
                        ("parameter", call(glob("torch._utils", "_rebuild_parameter"), tensor(), True, later)),
                        ("state", call(glob("torch._utils", "_rebuild_parameter_with_state"), tensor(), True, later, {})),
                        ("build", code(tensor(), val((True, None, later)), BUILD)),
                        ("new", code(new(parameter), val((tensor(), None, later, True, False)), BUILD))):
        yield "hooks-later-" + where, code(made, fill), "hooks that come behind the call"
    for number, state in enumerate(((tensor(), None, hooks, True, False), (tensor(), None, {}, 1, False), (tensor(), None, 5, True, False),
                                    (tensor(), True), (tensor(), None, {}), (tensor(), None, {}, True), (tensor(), None, {}, True, False, 1),
                                    (tensor(), hooks), (True, None, hooks), (1, None, {}))):
        yield "parameter-build-%d" % number, code(new(parameter), val(state), BUILD), "an empty Parameter with a state of %d parts" % len(state)
    for number, state in enumerate(((True, None, hooks), (1, None, {}), (True, None), (tensor(storage("1")), None, {}, True, False))):
        yield "parameter-built-%d" % number, code(call(parameter, tensor(), False), val(state), BUILD), "a Parameter with another state"


def rows_bits():
    for bit in ("neg", "conj"):
        for number, value in enumerate((False, 0, None, "", (), 1, "x")):
            body = call(glob("torch._utils", "_rebuild_tensor_v2"), storage(), 0, (4,), (1,), False, ORDERED_DICT, {bit: value})
            yield "bit-%s-%d" % (bit, number), body, "metadata whose %s is %r: PyTorch looks whether it is there" % (bit, value)


def rows_casts():
    """_rebuild_device_tensor_from_numpy casts: of what does not fit everybody makes something else."""
    forms = {"f4": struct.pack("<2f", 300, float("nan")), "f8": struct.pack("<2d", -1.5, 1e30), "i8": struct.pack("<2q", 2**40 + 5, -1),
             "i4": struct.pack("<2i", -1, 300), "u1": bytes([255, 1]), "b1": bytes([2, 1]), "c8": struct.pack("<4f", 1, 2, 3, 4)}
    for name, data in forms.items():
        for target in ("uint8", "int8", "int16", "int32", "int64", "bool"):
            if (name, target) in (("i8", "int64"), ("i4", "int32"), ("u1", "uint8"), ("b1", "bool")):
                continue
            body = call(glob("torch._utils", "_rebuild_device_tensor_from_numpy"), array(dtype(name), data), cls(target), "cpu", False)
            yield "cast-%s-%s" % (name, target), body, "an array of %s that becomes torch.%s" % (name, target)
    for shape in ((), (1,)):
        body = call(glob("torch._utils", "_rebuild_device_tensor_from_numpy"), array(dtype("i8"), longs(2**53 + 1), shape), cls("float64"), "cpu", False)
        yield "cast-inexact-%d" % len(shape), body, "2^53 + 1 as a float"
    for name in ("f4", "f8"):  # what is too large for e4m3fn is NaN to releases before 2.15, and 448 since
        for target in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"):
            body = call(glob("torch._utils", "_rebuild_device_tensor_from_numpy"), array(dtype(name), forms[name]), cls(target), "cpu", False)
            yield "cast-%s-%s" % (name, target), body, "an array of %s that becomes torch.%s: what is too large depends on the release" % (name, target)


def rows_meta():
    """A tensor that is made on the device meta has no numbers, whatever it is made of."""
    made = {"cpu-tensor": tensor(storage("1")), "numpy": array(dtype("f4"), struct.pack("<2f", 1, 2)), "numpy-scalar": array(dtype("f4"), struct.pack("<f", 1), ())}
    devices = {"text": "meta", "text-0": "meta:0", "text-127": "meta:127", "device": call(cls("device"), "meta"),
               "device-0": call(cls("device"), "meta:0"), "device-index": call(cls("device"), "meta", 0)}
    for source, data in made.items():
        function = "_rebuild_device_tensor_from_cpu_tensor" if source == "cpu-tensor" else "_rebuild_device_tensor_from_numpy"
        for name, device in devices.items():
            body = call(glob("torch._utils", function), data, cls("float32"), device, False)
            yield "meta-%s-%s" % (source, name), body, "a tensor of the device meta, which has no numbers, by %s" % function


def rows_constants():
    for number, device in enumerate(("zzz", "cpu:-1", "cuda:x", "CPU", "cuda:0 ", "", "cuda:01")):
        yield "device-%d" % number, call(cls("device"), device), "a device that PyTorch does not know"
    zone = call(glob("datetime", "timezone"), call(glob("datetime", "timedelta"), 0, 3600, 5))
    yield ("zone-microseconds", call(glob("datetime", "time"), b"\1\2\3\0\0\0", zone), "a time whose zone is an hour and five microseconds from UTC")
    for location in ("meta", "meta:0", "meta:127"):
        yield "location-" + location.replace(":", "-"), tensor(storage(location=location)), "a storage of the device meta, which has no numbers"


def rows_two_classes():
    """One key, two classes: releases of PyTorch differ in whose word counts."""
    kinds = (("FloatStorage", "IntStorage", 4), ("IntStorage", "FloatStorage", 4), ("LongStorage", "DoubleStorage", 2), ("HalfStorage", "BFloat16Storage", 8),
             ("FloatStorage", "DoubleStorage", 4), ("ByteStorage", "BoolStorage", 16), ("HalfStorage", "ShortStorage", 8))
    sizes = {"FloatStorage": 4, "IntStorage": 4, "LongStorage": 8, "DoubleStorage": 8, "HalfStorage": 2, "BFloat16Storage": 2, "ShortStorage": 2,
             "ByteStorage": 1, "BoolStorage": 1}
    for first, second, count in kinds:
        other = count * sizes[first] // sizes[second]
        name = "two-%s-%s" % (first[:-7].lower(), second[:-7].lower())
        pair = [tensor(storage(kind=first, numel=count), size=(1,)), tensor(storage(kind=second, numel=other), size=(1,))]
        text = "one storage as %s and as %s" % (first, second)
        yield name, "pt", torch_zip(val({"w": pair}), {"0": bytes(count * sizes[first])}), text
        for window in (None, ("v", 0, 1)):
            pair = [tensor(legacy_storage(kind=first, numel=count), size=(1,)), tensor(legacy_storage(kind=second, numel=other, view=window), size=(1,))]
            stream = legacy(val({"w": pair}), blobs=[longs(count) + bytes(count * sizes[first])])
            yield "%s-%s" % (name, "window" if window else "legacy"), "pth", stream, text + (", as a window" if window else ", legacy")


def rows_big_endian():
    """PyTorch swaps a storage by its own class when it is loaded, whatever its views are."""
    for name, store, views in (("untyped", storage(kind=UNTYPED, numel=16), ("float32", "int16", "float64", "complex64")),
                               ("float", storage(), ("int16", "float64", "uint8", "bfloat16")),
                               ("byte", storage(kind="ByteStorage", numel=16), ("float32", "int64"))):
        for view in views:
            body = val({"w": tensor_v3(store, 0, (1,), (1,), view)})
            yield "big-%s-%s" % (name, view), "pt", torch_zip(body, byteorder=b"big"), "a big-endian storage (%s) that is seen as %s" % (name, view)


NPY_OBJECTS = b"\x93NUMPY\x01\x00\x46\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(69) + b"\n"


def rows_records():
    """Others than PyTorch read archives too: numpy.load() takes any record for an array, joblib and pickle take any file."""
    evil = pickle(call(glob("posix", "system"), "echo ballast attack sample"), 0)
    contents = {"pickle": evil, "npy": NPY_OBJECTS + evil, "gzip": b"\x1f\x8b\x08" + evil, "bytes": b"\0" * 64}
    for name in ("evil.npy", "evil.joblib", "evil", "extra/evil.dat", "evil.pkl.gz", "evil.p", "evil.sav", "data/9", "data/0.npy", ".data/evil", "byteorder.txt",
                 "data.pkl.bak", "../data.pkl2", "code"):
        for content, data in contents.items():
            slug = name.replace(".", "-").replace("/", "-").strip("-")
            yield ("record-%s-%s" % (slug, content), "pt", torch_zip(val({"w": tensor()}), extra=[record(name.encode(), data)]),
                   "a record %s that the object does not name" % name)


def rows_modules():
    for number, parts in enumerate((("module", glob("torch.nn.parameter", "Parameter"), "x.py", "source"), ("module", 5, None, None),
                                    ("module", glob("torch", "Tensor")))):
        yield "module-%d" % number, "pth", legacy(val({"w": persistent(parts)}), keys=(), blobs=[]), "a class with its source, which PyTorch looks at"
    yield ("location-meta-legacy", "pth", legacy(val({"w": tensor(storage("0", "FloatStorage", 4, "meta", None))})),
           "a storage of the device meta, which has no numbers")


def rows_promises():
    """`.format_version` says that storages lie one behind the other in the order of their use: PyTorch may compute their places."""
    pair = val({"a": tensor(), "b": tensor(storage("1"))})
    swapped = val({"b": tensor(storage("1")), "a": tensor()})
    data = {"0": FLOATS, "1": FLOATS[::-1]}

    def promised(root, storages, alignment=b"64", between=None):
        first, *rest = [record(b"data/" + key.encode(), content) for key, content in storages.items()]
        told = [record(b".format_version", b"1"), record(b".storage_alignment", alignment)]
        return torch_zip(root, {}, extra=told + [first] + ([between] if between else []) + rest)
    yield "promise-order", promised(swapped, data), "storages in another order than their use"
    for number, alignment in enumerate((b"0", b"1", b"32", b"128", b"4096", b"x", b"", b"-64", b" 64", b"64 ", b"6_4", b"64\n", b"0x40")):
        yield "promise-alignment-%d" % number, promised(pair, data, alignment), "storages on another alignment than %r" % alignment
    for name, content in (("data-9", b"x" * 16), ("empty", b""), ("folder-", b"")):
        between = record(name.replace("-", "/").encode(), content)
        yield "promise-between-" + name.strip("-"), promised(pair, data, between=between), "a record between two storages"
    for what, more in (("descriptors", {"flags": 0}), ("padding", {"align": False}), ("both", {"flags": 0, "align": False})):
        loose = [record(b"data/" + key.encode(), FLOATS, **more) for key in "01"]
        root = val({key: tensor(storage(key)) for key in "01"})
        yield "promise-" + what, torch_zip(root, {}, extra=[record(b".format_version", b"1")] + loose), "storages without %s" % what


def samples():
    for rows in (rows_attributes, rows_parameters, rows_bits, rows_casts, rows_meta, rows_constants):
        for name, root, text in rows():
            yield Sample("state-" + name.replace("_", "-").lower(), "pt", "not-clean", "trust", text, 
                         torch_zip(val({"w": tensor(), "v": tensor(storage("1")), "x": root}), {"0": FLOATS, "1": FLOATS[::-1]}, 3))
    for rows in (rows_two_classes, rows_big_endian, rows_records, rows_modules, rows_quantized, rows_sparse):
        for name, ext, data, text in rows():
            yield Sample("state-" + name, ext, "not-clean", "trust", text, data)
    for name, root, held, counts, text in rows_copied():
        stream = legacy(val({"w": root}), tuple(held), [longs(counts[key]) + data for key, data in held.items()])
        yield Sample("state-copied-" + name, "pth", "not-clean", "trust", text, stream)
    for name, data, text in rows_promises():
        yield Sample("state-" + name, "pt", "not-clean", "trust", text, data)
