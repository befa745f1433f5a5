# SPDX-License-Identifier: Apache-2.0
"""The calls of ``safetensors`` itself: (name, function of a Side), for calls.py."""
import copy
import io
import json
import pathlib
import pickle

import numpy as np

import frameworks
import places

MEMORY = np.arange(64, dtype=np.float32)
CASES = [line.split("\t")[:2] for line in (places.ROOT / "tests/formats/safetensors/cases.tsv").read_text(encoding="utf-8").splitlines()[2:]]
NAMES = [*(name for _, name in frameworks.DTYPES.values()), "float4_e2m1fn_x2"]
BAD_NAMES = ["F32", "float", "torch.float32", "", "complex128", "Float32", "float6_e2m3", "float32 "]
NUMBERS = [0, 1, True, -1, 1.0, "1", None, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, np.int64(2), np.uint8(2), np.float32(2), [1], 1j]
SHAPES = [[], (), [0], [2, 3], (2, 3), range(2), iter([2, 3]), "23", b"23", None, 6, {2: 3}, {2, 3}, [2.0, 3], [-1], ["2"], [None], [True], np.array([2, 3]),
          [2**63], [0, 2**63], [2**64 - 1], [2**64], [0, 2**64 - 1], [2**40, 2**40], [0, 2**40, 2**40], [2**32, 2**32, 0], [[2, 3]]]  # fmt: skip
METADATA = [None, {}, {"a": "b"}, {"a": "b", "ü": "\n\"\\"}, {"": ""}, {"format": "pt"}, {"a": 1}, {"a": None}, {"a": b"b"}, {1: "b"}, {b"a": "b"}, {None: "b"},
            [], [("a", "b")], "a", 1, {"a": {"b": "c"}}, {"__metadata__": "x"}, {"a\0b": "c"}, {"a": "\ud800"}]  # fmt: skip


def _file(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def _entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


FILES = {
    "good": _file({"__metadata__": {"format": "pt"}, "b": _entry("F32", [4, 6], 0, 96), "a": _entry("I64", [3], 96, 120), "c": _entry("U8", [], 120, 121)}, bytes(range(121))),
    "plain": _file({"x": _entry("F32", [2], 0, 8)}, bytes(8)),
    "none": _file({}),
    "zero": _file({"z": _entry("F32", [0, 3], 0, 0), "y": _entry("I8", [2], 0, 2)}, b"\1\2"),
    "all": _file({code: _entry(code, [2], 8 * i, 8 * i + 2 * size) for i, (code, size) in enumerate((c, 4) for c in ("F32", "I32", "U32"))}, bytes(24)),
    "target": b"what was there",
    "nothing": b"",
    "short": b"\1\2\3",
    "text": b"this is no such file at all, it is text",
    "sub": _file({"f": _entry("F4", [4], 0, 2), "g": _entry("F6_E2M3", [4], 2, 5), "h": _entry("F6_E3M2", [8], 5, 11)}, bytes(11)),
}


def fresh(value):
    """Calls may change what they are given, or use it up."""
    return iter([2, 3]) if type(value) is type(iter([])) else value if hasattr(value, "read") else copy.copy(value)


def named(what, values, call):
    """A call for each value; what a value is goes into its name."""
    for i, value in enumerate(values):
        shown = repr(value).replace("\n", " ")
        yield f"{what} #{i} {shown if len(shown) < 60 else shown[:60] + '…'}", lambda side, value=value: call(side, fresh(value))


def specs():
    yield from named("TensorSpec(dtype)", NAMES + BAD_NAMES + [None, 1, b"float32", ["float32"]], lambda s, v: s.spec(dtype=v))
    yield from named("TensorSpec(shape)", SHAPES, lambda s, v: s.spec(shape=v).shape)
    yield from named("TensorSpec(float4, shape)", [[], [0], [3], [2, 3], [2**63], [2**62]], lambda s, v: s.spec(dtype="float4_e2m1fn_x2", shape=v).shape)
    yield from named("TensorSpec(data_ptr)", NUMBERS, lambda s, v: s.spec(data_ptr=v).data_ptr)
    yield from named("TensorSpec(data_len)", NUMBERS, lambda s, v: s.spec(data_len=v).data_len)
    yield "TensorSpec()", lambda s: s.core.TensorSpec()
    yield "TensorSpec(positional)", lambda s: s.core.TensorSpec("float32", [2], 0, 8)
    yield "TensorSpec(dtype alone)", lambda s: s.core.TensorSpec(dtype="float32")
    yield "TensorSpec(one more)", lambda s: s.spec(more=1)
    yield "TensorSpec repr", lambda s: repr(s.spec(data_ptr=5))
    yield "TensorSpec str", lambda s: str(s.spec(data_ptr=5, shape=[]))
    for name in ("dtype", "shape", "data_ptr", "data_len"):
        yield f"TensorSpec.{name} is set", lambda s, name=name: setattr(s.spec(), name, 1)
        yield f"TensorSpec.{name} is deleted", lambda s, name=name: delattr(s.spec(), name)
    yield "TensorSpec.other is set", lambda s: setattr(s.spec(), "other", 1)
    yield "TensorSpec.other", lambda s: s.spec().other
    yield "TensorSpec.shape is a copy", lambda s: (lambda spec: (spec.shape.append(7), spec.shape))(s.spec())
    yield "TensorSpec ==", lambda s: (lambda spec: (spec == spec, spec == s.spec(), spec != s.spec()))(s.spec())
    yield "TensorSpec as a key", lambda s: (lambda spec: {spec: 1}[spec])(s.spec())
    yield "TensorSpec < ", lambda s: s.spec() < s.spec()
    yield "TensorSpec bool", lambda s: bool(s.spec())
    yield "TensorSpec pickled", lambda s: pickle.loads(pickle.dumps(s.spec())).dtype
    yield "TensorSpec copied", lambda s: copy.copy(s.spec()).dtype
    yield "TensorSpec as a base", lambda s: type("Mine", (s.core.TensorSpec,), {})


def written(name, call):
    """serialize and serialize_file of the same arguments, given in two ways."""

    def in_memory(s, value):
        tensors, words = call(s, value)
        return s.core.serialize(tensors, **words)

    def on_disk(s, value):
        tensors, words = call(s, value)
        s.core.serialize_file(tensors, s.path("out"), **words)
        return pathlib.Path(s.path("out"))

    return ((f"serialize({name})", in_memory), (f"serialize_file({name})", on_disk))


def serializing():
    def sized(s, value):
        name, shape, size = value
        return {"x": s.spec(dtype=name, shape=shape, data_len=size)}, {}

    sizes = [("float32", [2, 3], 24), ("float32", [2, 3], 23), ("float32", [2, 3], 0), ("float32", [0], 0), ("float32", [0], 4), ("float32", [], 4), ("float32", [], 0),
             ("float32", [2**62], 8), ("float32", [2**63], 8), ("float32", [0, 2**63], 0), ("float32", [2**63, 0], 0), ("float32", [2**64 - 1, 0], 0), ("float32", [2**40, 2**40], 8),
             ("float32", [2**32, 2**32, 0], 0), ("float32", [0, 2**40, 2**40], 0), ("float4_e2m1fn_x2", [2, 3], 6), ("float4_e2m1fn_x2", [2, 3], 3), ("float4_e2m1fn_x2", [], 1), ("bool", [8], 8)]  # fmt: skip
    contents = [{}, [], None, "ab", 1, (), {"a": None}, {"a": {}}, {"a": {"dtype": "float32", "shape": [1], "data": b"abcd"}}, {"a": np.ones(2)}, {1: None}, {"a": b"abc"}]
    keys = ["", "a", "ü", "a\0b", '"', "\\", "\n", "__metadata__", "a" * 300, "\ud800", 1, None, b"a", ("a",)]
    for name, values, call in (
        ("sizes", sizes, sized),
        ("dtypes", [(name, [2, 3], 6 * size) for size, name in frameworks.DTYPES.values()], sized),
        ("metadata", METADATA, lambda s, v: ({"x": s.spec()}, {"metadata": v})),
        ("metadata alone", METADATA, lambda s, v: ({}, {"metadata": v})),
        ("names", keys, lambda s, v: ({v: s.spec()}, {})),
        ("tensor_dict", contents, lambda s, v: (v, {})),
        ("order", [("b", "a", "c"), ("x2", "x10", "x1")], lambda s, v: ({n: s.spec(dtype=d, shape=[2], data_len=2 * z) for n, (d, z) in zip(v, (("int8", 1), ("float64", 8), ("float16", 2)))}, {})),
        ("more", [1], lambda s, v: ({}, {"more": v})),
    ):
        for label, way in written(name, call):
            yield from named(label, values, way)
    yield "serialize()", lambda s: s.core.serialize()
    yield "serialize(positional metadata)", lambda s: s.core.serialize({"x": s.spec()}, {"a": "b"})
    yield "serialize(three)", lambda s: s.core.serialize({}, None, 1)
    yield "serialize(tensor_dict=)", lambda s: s.core.serialize(tensor_dict={"x": s.spec()})
    yield "serialize_file(no file)", lambda s: s.core.serialize_file({})
    targets = ["new", "target", "folder", "missing/x", "", "a\0b", "x" * 300]
    yield from named("serialize_file(filename)", targets, lambda s, v: (s.core.serialize_file({"x": s.spec()}, s.path(v) if v else v), pathlib.Path(s.path(v)))[1])
    kinds = [None, 1, 1.0, ["x"], ("x",), True, memoryview(b"x")]
    yield from named("serialize_file(filename's kind)", kinds, lambda s, v: s.core.serialize_file({"x": s.spec()}, v))
    yield "serialize_file(Path)", lambda s: (s.core.serialize_file({"x": s.spec()}, pathlib.Path(s.path("p"))), pathlib.Path(s.path("p")))[1]
    yield "serialize_file(bytes)", lambda s: s.core.serialize_file({"x": s.spec()}, s.path("by").encode())
    yield "serialize_file(filename=, tensor_dict=)", lambda s: s.core.serialize_file(filename=s.path("k"), tensor_dict={})


def deserializing():
    good = FILES["good"]
    kinds = [good, bytearray(good), memoryview(good), np.frombuffer(good, np.uint8), list(good), good.decode("latin1"), None, 1, [], io.BytesIO(good), b"", good + b"\0", good[:-1], memoryview(good)[::2]]
    yield from named("deserialize(bytes' kind)", kinds, lambda s, v: sorted(s.core.deserialize(v), key=repr))
    yield "deserialize()", lambda s: s.core.deserialize()
    yield "deserialize(bytes=)", lambda s: sorted(s.core.deserialize(bytes=good), key=repr)
    yield "deserialize(data=)", lambda s: s.core.deserialize(data=good)
    yield "deserialize(two)", lambda s: s.core.deserialize(good, 1)
    for name, data in FILES.items():
        yield f"deserialize(file {name})", lambda s, data=data: sorted(s.core.deserialize(data), key=repr)
    for name, text in CASES:
        yield f"deserialize(case {name})", lambda s, text=text: sorted(s.core.deserialize(bytes.fromhex(text)), key=repr)


def opening(framework):
    yield "safe_open()", lambda s: s.core.safe_open()
    yield "safe_open(filename alone)", lambda s: s.core.safe_open(s.path("good"))
    yield "safe_open(framework alone)", lambda s: s.core.safe_open(framework=framework.name)
    yield "safe_open(four positional)", lambda s: s.core.safe_open(s.path("good"), framework.name, "cpu", "mmap")
    yield "safe_open(more=)", lambda s: s.core.safe_open(s.path("good"), framework.name, more=1)
    names = ["pt", "torch", "pytorch", "np", "numpy", "tf", "tensorflow", "jax", "flax", "mlx", "paddle", "PT", "", "onnx", "pt ", None, 1, b"pt", ["pt"]]
    frameless = [name for name in names if name in (framework.name, "", "PT", "onnx", "pt ") or not isinstance(name, str)]
    yield from named("safe_open(framework)", frameless, lambda s, v: s.core.safe_open(s.path("good"), v).keys())
    devices = ["cpu", None, "cpu:0", "cpu:1", "CPU", "", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:0:0", "mps:1", "mps:x", "meta", -1, 1.0, b"cpu", ["cpu"], 2**64, object]
    yield from named("safe_open(device)", devices, lambda s, v: s.core.safe_open(s.path("good"), framework.name, device=v).keys())
    if framework.name not in ("torch", "paddle"):
        far = ["cuda", "cuda:0", "cuda:1", "mps", "npu:3", "xpu", "xla:1", "mlu", "hpu", "musa:2", 0, 1, True]
        yield from named("safe_open(device elsewhere)", far, lambda s, v: s.core.safe_open(s.path("good"), framework.name, device=v).keys())
    yield from named("safe_open(backend)", ["mmap", "pread", "MMAP", "", "read", None, 1, b"mmap", 'a"b'], lambda s, v: s.core.safe_open(s.path("good"), framework.name, backend=v).keys())
    kinds = [None, 1, 1.0, ["x"], True, b"nothing-there", memoryview(b"x")]
    yield from named("safe_open(filename's kind)", kinds, lambda s, v: s.core.safe_open(v, framework.name))
    yield "safe_open(Path)", lambda s: s.core.safe_open(pathlib.Path(s.path("good")), framework.name).keys()
    yield "safe_open(file object)", lambda s: s.core.safe_open(open(s.path("good"), "rb"), framework.name)
    yield "safe_open(bytes)", lambda s: s.core.safe_open(s.path("good").encode(), framework.name).keys()
    for backend in ("mmap", "pread"):
        yield from named(f"safe_open(a file, {backend})", [*FILES, "folder", "missing", "missing/x", "good/x", "a\0b", "x" * 300], lambda s, v, b=backend: s.core.safe_open(s.path(v), framework.name, backend=b).keys())
    for name, text in CASES:

        def case(s, text=text):
            pathlib.Path(s.path("case")).write_bytes(bytes.fromhex(text))
            with s.core.safe_open(s.path("case"), framework.name) as f:
                return f.keys(), f.offset_keys() if len(set(map(str, f.keys()))) < 2 else None, f.metadata()

        yield f"safe_open(case {name})", case


INDICES = [0, -1, 3, 4, -4, -5, 2**31, 2**40, -(2**40), 2**64, 1.0, "a", None, Ellipsis, True, False, [], [0], [0, 1], (), (0, 0), (0, 0, 0), (Ellipsis, 0), (0, Ellipsis), (Ellipsis, Ellipsis),
           (Ellipsis, 0, 0), (Ellipsis, 0, 0, 0), (0, None), ([0],), ([],), (0, [0]), slice(None), slice(1, 3), slice(1, 99), slice(9, 99), slice(3, 1), slice(-2, None), slice(None, -1), slice(2, 2),
           slice(None, None, 2), slice(None, None, 0), slice(None, None, -1), slice(0, 4, 9), slice(1.0, 2), slice("a"), slice(None, None, "a"), slice(0, 2**64), (slice(1, 3), slice(0, 7)), (slice(1, 3), 9),
           (slice(5, 6), slice(1, 2)), (slice(None), slice(None), slice(None)), (9, 9), (slice(1, 2), -9), np.int64(1), np.int32(-1), np.array(1), np.array([0, 1]), np.bool_(True), {}, {0}, b"0", 0j, (slice(0, 99), slice(0, 99))]  # fmt: skip


def methods(framework, way):
    """Of an open file. ``way``: a function of a side and words that opens "good" (or another)."""

    def on(call, **words):
        def run(s):
            with way(s, "good", **words) as f:
                return call(f)

        return run

    for backend in ("mmap", "pread"):
        words = {"backend": backend}
        yield f"keys {backend}", on(lambda f: f.keys(), **words)
        yield f"offset_keys {backend}", on(lambda f: f.offset_keys(), **words)
        yield f"metadata {backend}", on(lambda f: f.metadata(), **words)
        yield f"get_tensors {backend}", on(lambda f: f.get_tensors(), **words)
        yield from named(f"get_tensor {backend}", ["a", "b", "c", "missing", "", "__metadata__", None, 1, b"a", ["a"]], lambda s, v, w=words: on(lambda f: f.get_tensor(v), **w)(s))
        yield from named(f"get_slice {backend}", ["a", "b", "c", "missing", "", None, 1, b"a"], lambda s, v, w=words: on(lambda f: (f.get_slice(v).get_shape(), f.get_slice(v).get_dtype()), **w)(s))
        for name in "abc":
            yield from named(f"get_slice({name})[…] {backend}", INDICES, lambda s, v, w=words, n=name: on(lambda f: f.get_slice(n)[v], **w)(s))
    for name in ("keys", "offset_keys", "metadata", "get_tensors"):
        yield f"{name}(one more)", on(lambda f, name=name: getattr(f, name)(1))
    for name in ("get_tensor", "get_slice"):
        yield f"{name}()", on(lambda f, name=name: getattr(f, name)())
        yield f"{name}(name=)", on(lambda f, name=name: type(getattr(f, name)(name="a")) is type(getattr(f, name)("a")))
        yield f"{name}(two)", on(lambda f, name=name: getattr(f, name)("a", "b"))
    for what, call in {"len": len, "iter": iter, "in": lambda f: "a" in f, "[]": lambda f: f["a"], "other": lambda f: f.other, "bool": bool, "hash": lambda f: isinstance(hash(f), int), "==": lambda f: f == f,
                       "pickled": pickle.dumps, "copied": copy.copy, "is set": lambda f: setattr(f, "other", 1), "get_shape(1)": lambda f: f.get_slice("a").get_shape(1), "slice len": lambda f: len(f.get_slice("a")),
                       "slice iter": lambda f: iter(f.get_slice("a")), "slice other": lambda f: f.get_slice("a").other, "slice is set": lambda f: f.get_slice("a").__setitem__(0, 1),
                       "__enter__": lambda f: f.__enter__() is f, "__exit__()": lambda f: f.__exit__(), "__exit__(1)": lambda f: f.__exit__(None), "__exit__": lambda f: f.__exit__(None, None, None)}.items():  # fmt: skip
        yield what, on(call)
    for name, words in {"keys": (), "offset_keys": (), "metadata": (), "get_tensors": (), "get_tensor": ("a",), "get_slice": ("a",)}.items():

        def closed(s, name=name, words=words):
            with way(s, "good") as f:
                pass
            return getattr(f, name)(*words)

        yield f"closed: {name}", closed

    def kept(s):
        with way(s, "good") as f:
            part = f.get_slice("b")
        return part[1:3], part.get_shape()

    yield "a slice of a closed file", kept
    yield "closed twice", lambda s: (lambda f: (f.__exit__(None, None, None), f.__exit__(None, None, None)))(way(s, "good"))
    yield "entered twice", lambda s: (lambda f: (f.__exit__(None, None, None), f.__enter__() is f))(way(s, "good"))
    for name in ("plain", "none"):
        yield f"metadata of {name}", lambda s, name=name: way(s, name).metadata()
        yield f"get_tensors of {name}", lambda s, name=name: way(s, name).get_tensors()


def calls(framework):
    yield from specs()
    yield from serializing()
    yield from deserializing()
    yield from opening(framework)
    yield from ((f"safe_open: {name}", call) for name, call in methods(framework, lambda s, name, **words: s.core.safe_open(s.path(name), framework.name, **words)))
    by_handle = lambda s, name, **words: s.core._safe_open_handle(open(s.path(name), "rb"), framework.name, **words)  # noqa: E731
    yield from ((f"_safe_open_handle: {name}", call) for name, call in methods(framework, by_handle))
    handles = [None, 1, "good", b"good", io.BytesIO(b"abc"), object]
    yield from named("_safe_open_handle(handle's kind)", handles, lambda s, v: s.core._safe_open_handle(v, framework.name))
    yield "_safe_open_handle()", lambda s: s.core._safe_open_handle()
    yield "_safe_open_handle(no framework)", lambda s: s.core._safe_open_handle(open(s.path("good"), "rb"))
    yield "_safe_open_handle(closed file)", lambda s: (lambda f: (f.close(), s.core._safe_open_handle(f, framework.name)))(open(s.path("good"), "rb"))
    yield "SafetensorError is an Exception", lambda s: [base.__name__ for base in s.core.SafetensorError.__mro__]
    yield "SafetensorError is raised", lambda s: (_ for _ in ()).throw(s.core.SafetensorError("a", 1))
    yield "SafetensorError's arguments", lambda s: s.core.SafetensorError("a").args
    yield "SafetensorError without a word", lambda s: str(s.core.SafetensorError())
    yield "__version__", lambda s: s.core.__version__
