# SPDX-License-Identifier: Apache-2.0
"""Bytes handed to others without a copy: buffer protocol, NumPy, DLPack; and how long they live."""
import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import safetensors_bytes

import ballast
from ballast.numpy import load_file, save_file


@pytest.fixture
def opened(tmp_path):
    whole = np.arange(12, dtype=np.int32).reshape(3, 4)
    save_file({"x": whole}, tmp_path / "x")
    return tmp_path / "x", whole


def test_memoryviews(opened):
    path, whole = opened
    t = ballast.open(path)["x"]
    view = memoryview(t)
    assert (view.format, view.shape, view.strides, view.readonly, view.tolist()) == ("i", (3, 4), (16, 4), True, whole.tolist())
    part = memoryview(t[::2, 1::2])
    assert part.shape == (2, 2) and part.tolist() == whole[::2, 1::2].tolist()
    with pytest.raises(TypeError):
        view[0, 0] = 1
    view = memoryview(ballast.open(path, writable=True)["x"])
    view[0, 0] = 99
    assert view[0, 0] == 99
    assert bytes(memoryview(t)) == whole.tobytes()


@pytest.mark.parametrize("flag", ["ND", "STRIDES", "C_CONTIGUOUS", "F_CONTIGUOUS", "ANY_CONTIGUOUS"])
def test_a_consumer_gets_the_order_it_asks_for_or_what_numpy_says(tmp_path, flag):
    """The same verdict as for NumPy's array of the same strides."""
    testbuffer = pytest.importorskip("_testbuffer")
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    save_file({"x": whole}, tmp_path / "x")
    t = ballast.open(tmp_path / "x")["x"]
    how = getattr(testbuffer, "PyBUF_" + flag)
    for part in ((slice(None), slice(None)), (slice(None, None, 2), slice(None)), (slice(1), slice(None)), (slice(None), slice(1)), (slice(None), 2), (3, slice(None)), (slice(0), slice(2))):
        for turned in (False, True):
            ours, theirs = t[part], whole[part]
            if turned:
                ours, theirs = ours.T, theirs.T
            try:
                wanted = testbuffer.ndarray(theirs, getbuf=how).tobytes()
            except (BufferError, ValueError):
                with pytest.raises(BufferError):
                    testbuffer.ndarray(ours, getbuf=how)
            else:
                assert testbuffer.ndarray(ours, getbuf=how).tobytes() == wanted


def test_memoryviews_of_dtypes_without_a_letter(written):
    path = written(safetensors_bytes('{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}', bytes(4)))
    t = ballast.open(path)["x"]
    with pytest.raises(BufferError, match="BF16 has no buffer format"):
        memoryview(t)
    assert memoryview(t.bits()).format == "H"


def test_numpy_takes_no_copy(opened):
    path, whole = opened
    t = ballast.open(path)["x"]
    a, b = np.asarray(t), t.numpy()
    assert a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert np.array_equal(np.array(t), whole) and np.array(t).flags.writeable


def test_numpy_takes_dlpack(opened):
    path, whole = opened
    t = ballast.open(path, writable=True)["x"]
    array = np.from_dlpack(t)
    assert np.array_equal(array, whole) and array.__array_interface__["data"][0] == t.numpy().__array_interface__["data"][0]
    assert np.array_equal(np.from_dlpack(t[:, 1:3]), whole[:, 1:3])
    assert t.__dlpack_device__() == (1, 0)


def test_read_only_memory_is_copied_by_dlpack_unless_that_is_forbidden(opened):
    path, whole = opened
    t = ballast.open(path)["x"]
    capsule = t.__dlpack__()
    assert "dltensor" in repr(capsule)
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0)))
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0), copy=False))
    with pytest.raises(BufferError):
        t.__dlpack__(copy=False)
    assert np.array_equal(np.from_dlpack(t), whole)


WRITER = """
import sys, ballast, torch
t = ballast.open(sys.argv[1])["x"]
for take in (torch.from_dlpack, torch.as_tensor if torch.__version__ >= "2" else torch.from_dlpack):
    take(t).zero_()
print(t.tolist())
"""


def test_pytorch_may_write_to_what_it_took_of_a_read_only_file(written):
    pytest.importorskip("torch")
    header = '{"x":{"dtype":"I32","shape":[3],"data_offsets":[0,12]}}'.ljust(248)  # so that the data is aligned, and not copied for that
    path = written(safetensors_bytes(header, np.arange(3, dtype=np.int32).tobytes()))
    done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", WRITER, str(path)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[0, 1, 2]\n", done.stderr  # a process of its own: a write to the mapping ended it


def test_torch_takes_dlpack(opened):
    torch = pytest.importorskip("torch")
    path, whole = opened
    t = ballast.open(path, writable=True)["x"]
    tensor = torch.from_dlpack(t)
    assert tensor.tolist() == whole.tolist() and tensor.data_ptr() == t.torch().data_ptr()
    tensor[0, 0] = 77
    assert t[0, 0].item() == 77
    read_only = ballast.open(path)["x"].torch()  # a copy: PyTorch has no read-only tensors
    read_only[0, 0] = 5
    assert ballast.open(path)["x"][0, 0].item() == 0


@pytest.mark.parametrize("code", ["F32", "F64", "F16", "BF16", "I64", "I32", "U8", "BOOL"])
def test_as_tensor_gives_pytorch_the_values_without_a_copy(code, tmp_path):
    torch = pytest.importorskip("torch", "2.0", reason="older ones take no DLPack there: t.torch()")
    values = torch.arange(6).reshape(2, 3).to(getattr(torch, {"F32": "float32", "F64": "float64", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
                                                              "U8": "uint8", "BOOL": "bool"}[code]))  # fmt: skip
    ballast.save(tmp_path / "x.safetensors", {"x": values, "one": values[1, 2].clone()})
    file = ballast.open(tmp_path / "x.safetensors", writable=True)
    made = torch.as_tensor(file["x"])
    assert made.dtype == values.dtype and torch.equal(made, values) and made.data_ptr() == file["x"].torch().data_ptr()
    assert torch.equal(torch.as_tensor(file["one"]), values[1, 2]) and torch.equal(torch.as_tensor(file["x"][:, 1]), values[:, 1])
    read_only = torch.as_tensor(ballast.open(tmp_path / "x.safetensors")["x"])  # a copy: PyTorch has no read-only tensors
    read_only.zero_()
    assert torch.equal(torch.as_tensor(ballast.open(tmp_path / "x.safetensors")["x"]), values)


def test_capsules_nobody_takes_are_freed(opened):
    path, _ = opened
    t = ballast.open(path, writable=True)["x"]
    for _ in range(1000):
        t.__dlpack__()


def mapped(path):
    with open("/proc/self/maps") as maps:
        return any(str(path) in line for line in maps)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_the_file_is_let_go_with_its_last_tensor(opened):
    path, whole = opened
    arrays = load_file(path)
    assert mapped(path)
    part = arrays["x"][1:, 2]
    del arrays
    gc.collect()
    assert mapped(path) and part.tolist() == whole[1:, 2].tolist()
    del part
    gc.collect()
    assert not mapped(path)


def test_references_are_counted(opened):
    path, _ = opened
    name = "x" * 3
    before = sys.getrefcount(None), sys.getrefcount(np.ndarray), sys.getrefcount(ballast.Tensor)
    for _ in range(200):
        f = ballast.open(path)
        f["x"][0, 1:].numpy(), f.numpy(), f["x"].tobytes(), f.get(name), f.describe("x"), f.metadata
        with pytest.raises(KeyError):
            f["q"]
        with pytest.raises(IndexError):
            f["x"][9]
    del f
    gc.collect()
    after = sys.getrefcount(None), sys.getrefcount(np.ndarray), sys.getrefcount(ballast.Tensor)
    assert all(abs(b - a) < 100 for a, b in zip(before, after))


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer keeps freed memory")
def test_memory_does_not_grow(opened):
    resource = pytest.importorskip("resource")
    big = np.zeros(1 << 18, np.float64)  # 2 MiB
    path, _ = opened
    for round in range(60):
        save_file({"x": big}, path)
        load_file(path)["x"].sum()
        load_file(path, backend="pread")
        ballast.open(path)["x"].to("F16")
        ballast.checkpoint({"a": big, "b": ballast.open(path)["x"]})
        if round == 10:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000
