"""Tensors that do not fit their storages, and storages that do not fit their records."""
import struct

from pickle_asm import BUILD, call, code, get, glob, new, persistent, pickle, put, val
from torch_parts import (FLOATS, ORDERED_DICT, Sample, cls, layout, longs, parameter, qtensor, script_module,
                         script_zip, sparse, storage, tensor, tensor_v3, torch_zip)

FLOAT = cls("FloatStorage")
UTILS = "torch._utils"


def rebuild(name, *args):
    return call(glob(UTILS, name), *args)


def views():
    """Size, stride and offset against a storage of 4 floats."""
    yield "beyond-size", "offset-out-of-range", tensor(size=(100,)), "100 elements over a storage of 4"
    yield "beyond-by-one", "offset-out-of-range", tensor(size=(5,)), "5 elements over a storage of 4"
    yield "beyond-offset", "offset-out-of-range", tensor(offset=1), "offset 1, size 4 over a storage of 4"
    yield "beyond-offset-far", "offset-out-of-range", tensor(offset=1 << 40, size=(1,)), "offset 2^40"
    yield "beyond-scalar", "offset-out-of-range", tensor(offset=4, size=(), stride=()), "scalar just behind the storage"
    yield ("beyond-stride", "offset-out-of-range", tensor(size=(2, 2), stride=(3, 1)),
           "last element of a strided view lies outside")
    yield "beyond-stride-far", "offset-out-of-range", tensor(size=(2,), stride=(1 << 40,)), "stride 2^40"
    yield ("beyond-v1", "offset-out-of-range", rebuild("_rebuild_tensor", storage(), 2, (3,), (1,)),
           "_rebuild_tensor (v1) beyond its storage")
    yield ("beyond-v3", "offset-out-of-range", tensor_v3(storage(kind=cls("UntypedStorage", "torch.storage"),
           numel=16), 0, (17,), (1,)), "v3 tensor beyond its bytes")
    yield ("beyond-v3-wide", "offset-out-of-range", tensor_v3(storage(kind=cls("UntypedStorage", "torch.storage"),
           numel=16), 0, (4,), (1,), "float64"), "v3 tensor whose dtype is wider than the bytes allow")
    yield ("beyond-parameter", "offset-out-of-range", parameter(tensor(size=(5,))),
           "parameter over a tensor beyond its storage")
    yield ("beyond-npu", "offset-out-of-range", call(glob("torch_npu.utils.storage", "_rebuild_npu_tensor"),
           storage(), 0, (5,), (1,), False, ORDERED_DICT, 2), "torch_npu tensor beyond its storage")
    yield ("beyond-old-class", "offset-out-of-range", code(new(cls("FloatTensor")), val((storage(), 0, (5,), (1,))),
           BUILD), "FloatTensor of torch 0.1 beyond its storage")
    yield "offset-negative", "offset-out-of-range", tensor(offset=-1), "offset -1"
    yield "offset-min", "offset-out-of-range", tensor(offset=-2**63), "offset -2^63"
    yield "size-negative", "refused-any", tensor(size=(-4,)), "size -4"
    yield ("size-two-negative", "refused-any", tensor(size=(-2, -2), stride=(-2, 1)),
           "two negative sizes whose product is 4")
    yield "stride-negative", "refused-any", tensor(offset=3, stride=(-1,)), "stride -1, all elements inside"
    yield "stride-negative-out", "offset-out-of-range", tensor(stride=(-1,)), "stride -1 from offset 0"
    yield "rank-more-strides", "size-mismatch", tensor(size=(4,), stride=(4, 1)), "one size, two strides"
    yield "rank-fewer-strides", "size-mismatch", tensor(size=(2, 2), stride=(1,)), "two sizes, one stride"
    yield "rank-no-strides", "size-mismatch", tensor(size=(4,), stride=()), "one size, no stride"
    yield "rank-10000", "refused-any", tensor(size=(1,) * 10000, stride=(1,) * 10000), "10,000 dimensions of size 1"
    yield ("expand-square", "expanded-view", tensor(storage(numel=4), size=(1 << 21, 1 << 21), stride=(0, 0)),
           "2^21 x 2^21 elements, strides 0")
    yield "expand-line", "expanded-view", tensor(size=(1 << 50,), stride=(0,)), "2^50 elements, stride 0"
    yield "expand-mixed", "expanded-view", tensor(size=(1 << 40, 4), stride=(0, 1)), "2^40 rows over one row of 4"
    yield ("expand-window", "expanded-view", tensor(size=(1 << 19, 1 << 19, 2), stride=(0, 0, 2)),
           "stride 0 twice, then a window")
    yield ("expand-i64", "expanded-view", tensor(size=(2**61 - 1,), stride=(0,)),
           "2^61-1 elements of 4 bytes, just below 2^63 bytes")
    yield "product-wraps", "size-overflow", tensor(size=(1 << 40, 1 << 40), stride=(0, 0)), "2^80 elements"
    yield ("product-wraps-to-0", "size-overflow", tensor(size=(1 << 32, 1 << 32), stride=(0, 0)),
           "product is 2^64, which wraps to 0")
    yield ("product-wraps-to-4", "size-overflow", tensor(size=(4611686018427387905, 4), stride=(0, 1)),
           "product wraps to 4")
    yield ("bytes-wrap", "size-overflow", tensor(size=(1 << 62,), stride=(0,)),
           "2^62 floats: the number of bytes wraps to 0")
    yield "extent-wraps", "refused-any", tensor(size=(2, 2), stride=(2**63 - 1, 2**63 - 1)), "sum of strides wraps"
    yield ("extent-wraps-inside", "refused-any", tensor(offset=2, size=(3,), stride=(2**63,)),
           "2 * 2^63 wraps back into the storage")
    yield "size-huge-int", "refused-any", tensor(size=(1 << 200,), stride=(0,)), "size of 2^200"
    yield "size-float", "type-mismatch", tensor(size=(4.0,)), "size is a float"
    yield "size-string", "type-mismatch", tensor(size=("4",)), "size is a string"
    yield "size-none", "type-mismatch", tensor(size=None), "size is None"
    yield "size-int", "type-mismatch", tensor(size=4), "size is an int, not a tuple"
    yield "stride-dict", "type-mismatch", tensor(stride={}), "strides are a dict"
    yield "offset-string", "type-mismatch", tensor(offset="0"), "offset is a string"
    yield "storage-string", "type-mismatch", tensor("storage"), "a string where a storage belongs"
    yield "storage-none", "type-mismatch", tensor(val(None)), "None where a storage belongs"
    yield "storage-tensor", "type-mismatch", tensor(tensor()), "a tensor where a storage belongs"
    yield ("storage-inert", "type-mismatch", tensor(new(glob("mynet", "FakeStorage"))),
           "an inert object where a storage belongs")
    yield ("args-few", "refused-any", rebuild("_rebuild_tensor_v2", storage(), 0),
           "_rebuild_tensor_v2 with two arguments")
    yield "args-none", "refused-any", rebuild("_rebuild_tensor_v2"), "_rebuild_tensor_v2 with no arguments"
    yield "parameter-of-int", "type-mismatch", parameter(val(7)), "parameter over an int"
    yield ("v3-dtype-string", "type-mismatch", rebuild("_rebuild_tensor_v3",
           storage(kind=cls("UntypedStorage", "torch.storage"), numel=16), 0, (4,), (1,), False, ORDERED_DICT,
           "float32"), "v3 dtype is a string")
    yield ("v3-dtype-unknown", "bad-dtype", tensor_v3(storage(kind=cls("UntypedStorage", "torch.storage"), numel=16),
           0, (4,), (1,), "float3_e1m1"), "v3 dtype nobody knows")


def storages():
    """Persistent ids against the records; third item: the records."""
    ok = {"0": FLOATS}
    yield "record-short", "size-mismatch", tensor(), {"0": FLOATS[:12]}, "record holds 3 of 4 floats"
    yield "record-empty", "size-mismatch", tensor(), {"0": b""}, "record is empty"
    yield "record-long", "size-mismatch", tensor(), {"0": FLOATS * 2}, "record holds 8 floats, storage says 4"
    yield "record-off-by-one", "size-mismatch", tensor(), {"0": FLOATS + b"\0"}, "record is one byte too long"
    yield "record-other-type", "size-mismatch", tensor(storage(kind="DoubleStorage")), ok, "4 doubles in 16 bytes"
    yield "numel-huge", "size-mismatch", tensor(storage(numel=1 << 40)), ok, "storage says 2^40 elements"
    yield "numel-wraps", "size-overflow", tensor(storage(numel=(1 << 62) + 4)), ok, "numel * 4 wraps to 16"
    yield "numel-big-int", "refused-any", tensor(storage(numel=1 << 100)), ok, "storage says 2^100 elements"
    yield "numel-negative", "refused-any", tensor(storage(numel=-4)), ok, "storage says -4 elements"
    yield "numel-string", "type-mismatch", tensor(storage(numel="4")), ok, "numel is a string"
    yield "numel-float", "type-mismatch", tensor(storage(numel=4.0)), ok, "numel is a float"
    yield "numel-none", "type-mismatch", tensor(storage(numel=None)), ok, "numel is None"
    yield ("numel-two-answers", "size-mismatch", val([tensor(), tensor(storage(numel=8), size=(8,))]), ok,
           "one key, two numels")
    yield "missing", "missing-storage", tensor(), {}, "no storage records at all"
    yield "missing-key", "missing-storage", tensor(storage("7")), ok, "storage 7 does not exist"
    yield ("missing-second", "missing-storage", val([tensor(), tensor(storage("1"))]), ok,
           "the second of two storages is missing")
    yield "missing-path", "missing-storage", tensor(storage("../data.pkl")), ok, "storage key climbs out of data/"
    yield ("missing-absolute", "missing-storage", tensor(storage("/absolute/path")), ok,
           "storage key is an absolute path")
    yield "missing-nul", "missing-storage", tensor(storage("0\0x")), ok, "storage key goes on behind a NUL"
    yield "type-unknown", "bad-dtype", tensor(storage(kind="Float3Storage")), ok, "torch.Float3Storage"
    yield "type-string", "type-mismatch", tensor(storage(kind=val("FloatStorage"))), ok, "storage type is a string"
    yield ("type-user", "refused-any", tensor(storage(kind=glob("mynet", "FloatStorage"))), ok,
           "storage type of a user's module")
    yield "pid-short", "type-mismatch", tensor(persistent(("storage", FLOAT))), ok, "persistent id of two items"
    yield "pid-int", "type-mismatch", tensor(persistent(5)), ok, "persistent id is an int"
    yield "pid-string", "refused-any", tensor(persistent("storage")), ok, "persistent id is a string"
    yield ("pid-kind", "refused-any", tensor(persistent(("stowage", FLOAT, "0", "cpu", 4))), ok,
           "persistent id of an unknown kind")
    for name, location in (("bytes", b"meta"), ("bytes-cpu", b"cpu"), ("none", None), ("number", 1), ("tuple", ("cpu",)), ("list", ["meta"])):
        yield (f"location-{name}", "type-mismatch", tensor(storage(location=location)), ok,
               f"a storage's location is {location!r}")
    yield ("key-list", "type-mismatch", tensor(persistent(("storage", FLOAT, ["0"], "cpu", 4))), ok,
           "storage key is a list")


def kinds():
    """Quantized, sparse, nested and numpy tensors."""
    per_channel = glob("torch", "per_channel_affine")
    scales = tensor(storage("1", "DoubleStorage", 2), size=(2,))
    points = tensor(storage("2", "LongStorage", 2), size=(2,))
    two = {"0": b"\1\2\3\4", "1": struct.pack("<2d", 0.5, 0.25), "2": longs(0, 0)}
    for axis in (2, -3, 1 << 40):
        yield ("q-axis-%d" % axis, "offset-out-of-range",
               qtensor((2, 2), (2, 1), (per_channel, scales, points, axis)), two,
               "per-channel axis %d of a rank 2 tensor" % axis)
    yield ("q-axis-string", "type-mismatch", qtensor((2, 2), (2, 1), (per_channel, scales, points, "0")), two,
           "per-channel axis is a string")
    yield ("q-scales-short", "size-mismatch", qtensor((4,), (1,), (per_channel, scales, points, 0)), two,
           "2 scales for 4 channels")
    yield ("q-points-short", "size-mismatch", qtensor((2, 2), (2, 1),
           (per_channel, scales, tensor(storage("2", "LongStorage", 2), size=(1,)), 0)), two,
           "1 zero point for 2 channels")
    yield ("q-scales-string", "type-mismatch", qtensor((2, 2), (2, 1), (per_channel, "scales", points, 0)), two,
           "scales are a string")
    yield "q-params-empty", "refused-any", qtensor((2, 2), (2, 1), ()), two, "no quantization parameters"
    yield ("q-scheme-unknown", "refused-any", qtensor((2, 2), (2, 1), (glob("torch", "per_planet_affine"), 1.0, 0)),
           two, "unknown quantization scheme")
    yield ("q-beyond", "offset-out-of-range", qtensor((5,), (1,), (glob("torch", "per_tensor_affine"), 1.0, 0)), two,
           "quantized tensor beyond its storage")
    values = tensor()
    for name, numbers in (("high", (0, 1, 2, 9)), ("negative", (0, 1, 2, -1)), ("huge", (0, 1, 2, 1 << 62))):
        index = tensor(storage("1", "LongStorage", 4), size=(1, 4), stride=(4, 1))
        yield ("coo-index-" + name, "offset-out-of-range", sparse(index, values, (4,)),
               {"0": FLOATS, "1": longs(*numbers)}, "COO index %d of 4 rows" % numbers[-1])
    index = tensor(storage("1", "LongStorage", 4), size=(1, 4), stride=(4, 1))
    right = {"0": FLOATS, "1": longs(0, 1, 2, 3)}
    yield "coo-count", "size-mismatch", sparse(index, tensor(size=(3,)), (4,)), right, "4 indices, 3 values"
    yield "coo-rank", "size-mismatch", sparse(index, values, (4, 4)), right, "1 index row for a rank 2 tensor"
    yield ("coo-size-overflow", "size-overflow", sparse(tensor(storage("1", "LongStorage", 4), size=(2, 2),
           stride=(2, 1)), tensor(size=(2,)), (1 << 40, 1 << 40)), right, "dense shape 2^40 x 2^40")
    yield ("coo-dense-bomb", "expanded-view", sparse(tensor(storage("1", "LongStorage", 4), size=(2, 2),
           stride=(2, 1)), tensor(size=(2,)), (1 << 30, 1 << 20)), right,
           "dense shape of 2^50 elements, two of them set")
    yield "coo-size-negative", "refused-any", sparse(index, values, (-4,)), right, "negative dense size"
    yield ("coo-index-float", "type-mismatch", sparse(tensor(size=(1, 4), stride=(4, 1)), values, (4,)), right,
           "indices are floats")
    yield "coo-index-string", "type-mismatch", sparse("indices", values, (4,)), right, "indices are a string"

    def csr(rows, cols, size, stored):
        return sparse_csr(rows, cols, size), {"0": FLOATS, "1": longs(*stored[0]), "2": longs(*stored[1])}

    for name, say, rows, cols, text in (
            ("col-high", "offset-out-of-range", (0, 2, 4), (0, 1, 0, 7), "column 7 of 2"),
            ("row-decreasing", "refused-any", (0, 3, 2), (0, 1, 0, 1), "row pointers decrease"),
            ("row-end", "refused-any", (0, 2, 9), (0, 1, 0, 1), "last row pointer behind the values"),
            ("row-negative", "refused-any", (-1, 2, 4), (0, 1, 0, 1), "first row pointer -1")):
        body, records = csr(3, 4, (2, 2), (rows, cols))
        yield "csr-" + name, say, body, records, "CSR: " + text
    body, records = csr(3, 4, (9, 2), ((0, 2, 4), (0, 1, 0, 1)))
    yield "csr-rows", "size-mismatch", body, records, "CSR: 9 rows, 3 row pointers"
    yield ("layout-unknown", "refused-any", call(glob(UTILS, "_rebuild_sparse_tensor"), layout("sparse_moebius"),
           (index, values, (4,))), right, "unknown sparse layout")
    yield ("meta-negative", "refused-any", rebuild("_rebuild_meta_tensor_no_storage", cls("float32"), (-1,), (1,),
           False), {"0": FLOATS}, "meta tensor of size -1")
    yield ("wrapper-negative", "refused-any", rebuild("_rebuild_wrapper_subclass", glob("mynet", "Sub"),
           cls("float32"), (-4,), (1,), 0, cls("strided"), "cpu", False), {"0": FLOATS},
           "wrapper subclass of size -4")
    yield "numpy-short", "size-mismatch", ndarray((8,), FLOATS), {"0": FLOATS}, "numpy array of 8 floats in 16 bytes"
    yield ("numpy-wraps", "size-overflow", ndarray((1 << 40, 1 << 40), FLOATS), {"0": FLOATS},
           "numpy array of 2^80 floats")
    yield "numpy-negative", "refused-any", ndarray((-4,), FLOATS), {"0": FLOATS}, "numpy array of size -4"
    yield ("numpy-scalar", "size-mismatch", call(glob("numpy.core.multiarray", "scalar"), dtype("f8"), b"\0\0"),
           {"0": FLOATS}, "numpy double of 2 bytes")
    yield ("numpy-frombuffer", "size-mismatch", call(glob("numpy.core.numeric", "_frombuffer"), FLOATS, dtype("f4"),
           (8,), "C"), {"0": FLOATS}, "protocol 5 numpy array of 8 floats in 16 bytes")


def sparse_csr(rows, count, size):
    row = tensor(storage("1", "LongStorage", rows), size=(rows,))
    col = tensor(storage("2", "LongStorage", count), size=(count,))
    return call(glob(UTILS, "_rebuild_sparse_tensor"), layout("sparse_csr"), (row, col, tensor(), size))


def dtype(text):
    made = call(glob("numpy", "dtype"), text, False, True)
    return code(made, val((3, "<", None, None, None, -1, -1, 0)), BUILD)


def ndarray(shape, data):
    made = call(glob("numpy.core.multiarray", "_reconstruct"), glob("numpy", "ndarray"), (0,), b"b")
    return code(made, val((1, shape, dtype("f4"), False, data)), BUILD)


def samples():
    for name, say, body, text in views():
        yield Sample("tensor-" + name, "pt", say, "tensor", text, torch_zip({"weight": body}))
    for name, say, body, records, text in storages():
        yield Sample("storage-" + name, "pt", say, "tensor", text, torch_zip({"weight": body}, records))
    for name, say, body, records, text in kinds():
        yield Sample("tensor-" + name, "pt", say, "tensor", text, torch_zip({"weight": body}, records, version=3))
    yield Sample("storage-bare-pickle", "pkl", "missing-storage", "tensor", "data.pkl taken out of its zip",
                 pickle({"weight": tensor()}))
    yield Sample("storage-script-missing", "pt", "missing-storage", "tensor",
                 "TorchScript archive without its storages", script_zip(script_module({"weight": tensor()}), (), {}))
    yield Sample("tensor-script-beyond", "pt", "offset-out-of-range", "tensor",
                 "TorchScript tensor beyond its storage", script_zip(script_module({"weight": tensor(size=(5,))})))
    again = val({"a": tensor(code(storage(), put(0))), "b": tensor(get(0), size=(9,))})
    yield Sample("tensor-memo-storage", "pt", "offset-out-of-range", "tensor",
                 "second view of a memoized storage lies outside", torch_zip(again))
