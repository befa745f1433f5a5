# SPDX-License-Identifier: Apache-2.0
"""The calls of safetensors.numpy, .torch, .flax, .tensorflow, .paddle and .mlx: (name, function of a Side), for calls.py."""
import pathlib

import numpy as np

import frameworks
from call_core import CASES, FILES, METADATA, named

SHAPES = [(), (1,), (7,), (2, 3), (2, 1, 3), (0,), (2, 0, 3)]
# What stands for tensors and is none.
CONTENTS = [None, [], "ab", 1, (), [("a", 1)], {"a": None}, {"a": 1}, {"a": 1.5}, {"a": "text"}, {"a": b"bytes"}, {"a": [1, 2]}, {"a": {"b": 1}}, {"a": object}, {1: 2}]


def held(framework, code):
    """The framework has this dtype."""
    try:
        return framework.code(framework.make(bytes(frameworks.DTYPES[code][0] * 2), code, (2,))) == code
    except Exception:
        return False


def saved(name, call):
    """save and save_file of the same arguments."""

    def in_memory(s, value):
        tensors, words = call(s, value)
        return s.part.save(tensors, **words)

    def on_disk(s, value):
        tensors, words = call(s, value)
        return s.part.save_file(tensors, s.path("out"), **words), pathlib.Path(s.path("out"))

    return ((f"save({name})", in_memory), (f"save_file({name})", on_disk))


def foreign(framework):
    """Other frameworks' tensors: NumPy's, and for NumPy lists in disguise."""
    return [{"a": np.ones(2, np.float32)}, {"a": np.float32(1)}, {"a": np.ones(2, "U2")}, {"a": np.array([None])}] if framework.name != "numpy" else [{"a": memoryview(b"abcd")}, {"a": range(3)}]


def saving(framework):
    codes = [code for code in frameworks.DTYPES if held(framework, code)]
    for name, values, call in (
        ("dtypes", codes, lambda s, v: ({"a": s.tensor(v)}, {})),
        ("shapes", SHAPES, lambda s, v: ({"a": s.tensor("F32", v)}, {})),
        ("several", [("b", "a"), ("a", "ü", ""), ()], lambda s, v: ({n: s.tensor(c, (2,)) for n, c in zip(v, ("F32", "I8", "F16"))}, {})),
        ("metadata", METADATA, lambda s, v: ({"a": s.tensor("F32")}, {"metadata": v})),
        ("contents", CONTENTS, lambda s, v: (v, {})),
        ("foreign", foreign(framework), lambda s, v: (v, {})),
        ("names", ["", "ü", "a\0b", '"', "__metadata__", "\ud800", 1, None, b"a"], lambda s, v: ({v: s.tensor("F32")}, {})),
        ("more", [1], lambda s, v: ({}, {"more": v})),
    ):
        for label, way in saved(name, call):
            yield from named(label, values, way)
    yield "save()", lambda s: s.part.save()
    yield "save(positional metadata)", lambda s: s.part.save({"a": s.tensor("F32")}, {"k": "v"})
    yield "save(three)", lambda s: s.part.save({}, None, 1)
    first = "tensor_dict" if framework.name == "numpy" else "tensors"
    for name in ("tensors", "tensor_dict"):
        yield f"save({name}=)", lambda s, name=name: s.part.save(**{name: {"a": s.tensor("F32")}})
    yield "save_file(all by name)", lambda s: s.part.save_file(**{first: {"a": s.tensor("F32")}, "filename": s.path("n"), "metadata": {"a": "b"}})
    yield "save_file(no file)", lambda s: s.part.save_file({})
    targets = ["new", "target", "folder", "missing/x", "", "a\0b", "x" * 300]
    yield from named("save_file(filename)", targets, lambda s, v: (s.part.save_file({"a": s.tensor("F32")}, s.path(v) if v else v), pathlib.Path(s.path(v)))[1])
    yield from named("save_file(filename's kind)", [None, 1, 1.0, ["x"], True], lambda s, v: s.part.save_file({"a": s.tensor("F32")}, v))
    yield "save_file(Path)", lambda s: (s.part.save_file({"a": s.tensor("F32")}, pathlib.Path(s.path("p"))), pathlib.Path(s.path("p")))[1]
    yield "save leaves the dict alone", lambda s: (lambda d: (s.part.save(d), type(d["a"]).__name__)[1])({"a": s.tensor("F32")})


def loading(framework):
    good = FILES["good"]
    kinds = [good, bytearray(good), memoryview(good), list(good), good.decode("latin1"), None, 1, b"", good + b"\0", good[:-1]]
    yield from named("load(data's kind)", kinds, lambda s, v: s.part.load(v))
    yield "load()", lambda s: s.part.load()
    yield "load(data=)", lambda s: s.part.load(data=good)
    yield "load(three)", lambda s: s.part.load(good, "cpu", 1)
    empty = framework.dies_of_empty_tensors
    for name in ("plain", "none", "nothing", "short", "text", "sub") + (() if empty else ("zero",)):
        yield f"load(file {name})", lambda s, name=name: s.part.load(FILES[name])
    for name in ("plain", "none", "nothing", "short", "text", "folder", "missing", "missing/x", "good", "sub") + (() if empty else ("zero",)):
        for backend in ("mmap", "pread"):
            yield f"load_file(file {name}, {backend})", lambda s, name=name, backend=backend: s.part.load_file(s.path(name), backend=backend)
    yield from named("load_file(filename's kind)", [None, 1, 1.0, ["x"], True, b"nothing-there"], lambda s, v: s.part.load_file(v))
    yield from named("load_file(backend)", ["MMAP", "", None, 1, b"mmap"], lambda s, v: s.part.load_file(s.path("good"), backend=v))
    yield "load_file()", lambda s: s.part.load_file()
    yield "load_file(Path)", lambda s: s.part.load_file(pathlib.Path(s.path("good")))
    yield "load_file(filename=)", lambda s: s.part.load_file(filename=s.path("good"))
    yield "load_file(three)", lambda s: s.part.load_file(s.path("good"), "cpu", "mmap")
    yield "load_file(more=)", lambda s: s.part.load_file(s.path("good"), more=1)
    devices = ["cpu", None, "cpu:0", "", "gpu", "cuda:x", "mps:1", -1, 1.0, b"cpu"]
    yield from named("load_file(device)", devices, lambda s, v: s.part.load_file(s.path("good"), device=v))
    for code in frameworks.DTYPES:
        if held(framework, code):
            yield f"load(save) {code}", lambda s, code=code: s.part.load(s.part.save({"a": s.tensor(code)}))
            for backend in ("mmap", "pread"):
                yield f"load_file(save_file) {code} {backend}", lambda s, code=code, backend=backend: (s.part.save_file({"a": s.tensor(code)}, s.path("again")), s.part.load_file(s.path("again"), backend=backend))[1]
    for name, text in CASES:
        if not empty or "zero" not in name and "empty" not in name and "_0" not in name:
            yield f"load(case {name})", lambda s, text=text: s.part.load(bytes.fromhex(text))
    for shape in SHAPES:
        if not empty or 0 not in shape:
            yield f"load(save) {shape}", lambda s, shape=shape: s.part.load(s.part.save({"a": s.tensor("F32", shape)}))


def numpy_helpers():
    arrays = {"plain": np.arange(6, dtype=np.float32).reshape(2, 3), "turned": np.arange(6, dtype=np.int16).reshape(2, 3).T, "big": np.arange(3, dtype=">i4"), "stepped": np.arange(9, dtype=np.int8)[::3],
              "backwards": np.arange(4, dtype=np.int8)[::-1], "scalar": np.array(3.0), "none": np.empty((0, 3)), "half": np.ones(2, np.float16)}  # fmt: skip
    for name, array in arrays.items():
        yield f"_is_little_endian {name}", lambda s, a=array: s.part._is_little_endian(a)
        yield f"_flatten {name}", lambda s, a=array: s.part._flatten({"a": a}, [])
        yield f"save {name}", lambda s, a=array: s.part.save({"a": a})
        yield f"load(save) {name}", lambda s, a=array: s.part.load(s.part.save({"a": a}))
    for dtype in ("longdouble", "complex128", "U3", "S3", "O", "M8[s]", "m8[s]", "V4", [("a", "i4")]):
        yield f"save of {dtype}", lambda s, d=dtype: s.part.save({"a": np.zeros(2, d)})
    yield from named("_getdtype", ["F32", "BOOL", "BF16", "C64", "f32", "", None, 1, "F4"], lambda s, v: s.part._getdtype(v))
    view = [("a", {"dtype": "F32", "shape": [2], "data": bytearray(8)})]
    views = [view, [], None, [("a", {})], [("a", {"dtype": "X", "shape": [], "data": b""})], [("a", {"dtype": "F32", "shape": [3], "data": b"12345678"})], [("a", {"dtype": "F32", "shape": [2], "data": b"123"})]]
    yield from named("_view2np", views, lambda s, v: s.part._view2np(v))
    yield "_view2np: written", lambda s: s.part._view2np(view)["a"].flags.writeable
    for name in ("load", "load_file"):
        yield f"{name}: written", lambda s, name=name: (s.part.load(FILES["good"]) if name == "load" else s.part.load_file(s.path("good")))["b"].flags.writeable


def translating(there, back):
    """_np2jnp and _jnp2np, and the like."""
    arrays = [{}, {"a": np.ones(2, np.float32)}, {"a": np.arange(6, dtype=np.int32).reshape(2, 3), "b": np.array(2.5, np.float32)}, {"a": 1}, {"a": "text"}, {"a": None}, None, []]
    yield from named(there, arrays, lambda s, v: getattr(s.part, there)(v))
    yield from named(back, [None, [], {}, {"a": None}, {"a": "text"}], lambda s, v: getattr(s.part, back)(v))
    for code in ("F32", "I32", "BOOL", "F16"):
        yield f"{back} {code}", lambda s, code=code: getattr(s.part, back)({"a": s.tensor(code)})


def paddle_helpers():
    yield from named("_getdtype", ["F32", "BOOL", "BF16", "U16", "f32", "", None], lambda s, v: repr(s.part._getdtype(v)))
    for code in ("F32", "BF16", "I8", "BOOL"):
        yield f"_to_ndarray {code}", lambda s, code=code: (lambda tensor: s.part._to_ndarray(tensor, "a")[0].view(np.uint8).reshape(-1).copy())(s.tensor(code))
        yield f"_flatten {code}", lambda s, code=code: s.part._flatten({"a": s.tensor(code)}, [])
        yield f"_view2paddle {code}", lambda s, code=code: s.part._view2paddle(s.core.deserialize(s.part.save({"a": s.tensor(code)})), "cpu")
    yield "_view2paddle ([])", lambda s: s.part._view2paddle([], "cpu")
    yield "save of a transposed tensor", lambda s: s.part.save({"a": s.tensor("F32").T})
    yield "load(device=cpu)", lambda s: s.part.load(FILES["good"], "cpu")
    yield "load(device=)", lambda s: s.part.load(FILES["good"], device="cpu")


def calls(framework):
    yield from saving(framework)
    yield from loading(framework)
    if framework.name == "numpy":
        yield from numpy_helpers()
    elif framework.name == "torch":
        import call_torch

        yield from call_torch.calls()
    else:
        there, back = {"jax": ("_np2jnp", "_jnp2np"), "tensorflow": ("_np2tf", "_tf2np"), "mlx": ("_np2mx", "_mx2np"), "paddle": ("_np2paddle", "_paddle2np")}[framework.name]
        yield from translating(there, back)
    if framework.name == "paddle":
        yield from paddle_helpers()
