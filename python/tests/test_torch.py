# SPDX-License-Identifier: Apache-2.0
"""ballast.torch against what safetensors.torch does."""
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from conftest import safetensors_bytes  # noqa: E402

import ballast  # noqa: E402
from ballast import SafetensorError, safe_open  # noqa: E402
from ballast.torch import _SIZE, _TYPES, load, load_file, save, save_file, storage_ptr, storage_size  # noqa: E402

NEW = pytest.mark.skipif(not hasattr(torch, "float8_e4m3fn"), reason="this PyTorch has no 8-bit floats")
UNSIGNED = pytest.mark.skipif(not hasattr(torch, "uint16"), reason="this PyTorch has no uint16")
FLOAT4 = pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this PyTorch has no float4")
DTYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def test_writes_the_bytes_of_the_specification():
    data = {"test": torch.zeros((2, 2), dtype=torch.bfloat16)}
    text = '{"test":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'
    assert save(data) == safetensors_bytes(text + " " * (-len(text) % 8), bytes(8))


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("name", DTYPES)
def test_round_trip_of_every_dtype(name, backend, tmp_path):
    tensor = torch.arange(12).reshape(3, 4).to(getattr(torch, name))
    save_file({"x": tensor}, tmp_path / "x", metadata={"format": "pt"})
    assert same(load_file(tmp_path / "x", backend=backend)["x"], tensor)
    assert same(load(save({"x": tensor}))["x"], tensor)
    with safe_open(tmp_path / "x", "pt", backend=backend) as f:
        assert f.metadata() == {"format": "pt"}
        assert same(f.get_tensor("x"), tensor)
        assert same(f.get_tensors()["x"], tensor)


@NEW
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_round_trip_of_8_bit_floats(name, tmp_path):
    if not hasattr(torch, name):
        pytest.skip(name)
    tensor = torch.arange(12, dtype=torch.uint8).reshape(3, 4).view(getattr(torch, name))
    save_file({"x": tensor}, tmp_path / "x")
    assert same(load_file(tmp_path / "x")["x"], tensor)
    assert same(load(save({"x": tensor}))["x"], tensor)


@UNSIGNED
@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_round_trip_of_unsigned_integers(name, tmp_path):
    tensor = torch.arange(12).reshape(3, 4).to(getattr(torch, name))
    save_file({"x": tensor}, tmp_path / "x")
    assert same(load_file(tmp_path / "x")["x"], tensor)


@FLOAT4
def test_round_trip_of_packed_floats(tmp_path):
    tensor = torch.arange(12, dtype=torch.uint8).reshape(3, 4).view(torch.float4_e2m1fn_x2)
    save_file({"x": tensor}, tmp_path / "x")
    with safe_open(tmp_path / "x", "pt") as f:
        assert f.get_slice("x").get_shape() == [3, 8]
        assert same(f.get_tensor("x"), tensor)
    assert same(load(save({"x": tensor}))["x"], tensor)


def test_dtypes_this_pytorch_does_not_have(written):
    path = written(safetensors_bytes('{"x":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}}', b"\x00" * 3))
    with pytest.raises(SafetensorError, match="Dtype not understood: F6_E2M3"):
        load_file(path)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (0, 2, 3)])
def test_round_trip_of_empty_and_scalar(shape, tmp_path):
    tensor = torch.ones(shape)
    save_file({"x": tensor, "y": torch.zeros(0)}, tmp_path / "x")
    assert same(load_file(tmp_path / "x")["x"], tensor)
    assert same(load(save({"x": tensor}))["x"], tensor)


def test_each_tensor_has_a_storage_of_its_own(tmp_path):
    save_file({"a": torch.ones(3), "b": torch.ones(5), "c": torch.ones(7, dtype=torch.int8)}, tmp_path / "x")
    loaded = load_file(tmp_path / "x")
    assert [storage_size(loaded[name]) for name in "abc"] == [12, 20, 7]
    assert len({storage_ptr(tensor) for tensor in loaded.values()}) == 3


def test_loaded_tensors_may_be_written_and_the_file_stays(tmp_path):
    save_file({"x": torch.zeros(10)}, tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    loaded = load_file(tmp_path / "x")["x"]
    loaded += 1
    assert (tmp_path / "x").read_bytes() == before and loaded.sum() == 10
    save_file({"x": loaded}, tmp_path / "x")
    assert load_file(tmp_path / "x")["x"].sum() == 10


def test_tensors_outlive_the_file(tmp_path):
    save_file({"x": torch.arange(100_000)}, tmp_path / "x")
    with safe_open(tmp_path / "x", "pt") as f:
        loaded = f.get_tensor("x")
        part = f.get_slice("x")[10:20]
    del f
    (tmp_path / "x").unlink()
    assert int(loaded.sum()) == 4999950000 and part.tolist() == list(range(10, 20))


def test_slices_are_pytorchs(tmp_path):
    whole = torch.arange(60).reshape(3, 4, 5)
    save_file({"x": whole}, tmp_path / "x")
    mask = torch.tensor([True, False, True])
    with safe_open(tmp_path / "x", "pt") as f:
        part = f.get_slice("x")
        for index in [0, -1, slice(2), (slice(None), slice(None, None, 2)), (..., 1), (0, None), (mask,), ([0, 2],), ()]:
            assert torch.equal(part[index], whole[index])
        with pytest.raises(IndexError):
            part[7]
    with safe_open(tmp_path / "x", "pt", backend="pread") as f:
        part = f.get_slice("x")
        for index in [0, -1, slice(2), (slice(None), slice(None, None, 2)), (..., 1), (0, None), (mask,), ()]:
            assert torch.equal(part[index], whole[index])


def test_devices(tmp_path):
    save_file({"x": torch.ones(2)}, tmp_path / "x")
    for device in ("cpu", "cpu:0", torch.device("cpu")):
        assert load_file(tmp_path / "x", device=device)["x"].device.type == "cpu"
    with pytest.raises(SafetensorError, match="^device nothing is invalid$"):
        load_file(tmp_path / "x", device="nothing")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA here")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", 0])
def test_cuda(tmp_path, device):
    data = {"x": torch.arange(6.0, device="cuda"), "y": torch.ones(3, dtype=torch.bfloat16, device="cuda")}
    save_file(data, tmp_path / "x")
    loaded = load_file(tmp_path / "x", device=device)
    assert loaded["x"].is_cuda and torch.equal(loaded["x"], data["x"]) and torch.equal(loaded["y"], data["y"])
    with safe_open(tmp_path / "x", "pt", device=device) as f:
        assert f.get_slice("x")[1:3].is_cuda


@pytest.mark.parametrize("slot", [1, 7, 64, 1 << 20])
def test_transfers_in_slots_of_any_size(tmp_path, slot, monkeypatch):
    """The way to a GPU, rehearsed on the CPU: tensors that are cut into pieces, and pieces that share a slot."""
    import ballast._transfer as transfer

    monkeypatch.setattr(transfer, "SLOT_BYTES", slot)
    data = {"a": torch.arange(50.0).reshape(5, 10), "b": torch.ones(3, dtype=torch.bfloat16), "c": torch.tensor([True, False, True])}
    data.update(d=torch.tensor(2.5), e=torch.zeros(0, 3), f=torch.arange(9), g=torch.ones(2, dtype=torch.complex64))
    save_file(data, tmp_path / "x")
    moved = transfer.to_device(ballast.open(tmp_path / "x"), "cpu")
    assert sorted(moved) == sorted(data) and all(same(moved[name], data[name]) for name in data)
    torch.save({"t": torch.arange(12.0).reshape(3, 4).t(), "u": torch.ones(4)}, tmp_path / "y.pt")
    moved = transfer.to_device(ballast.open(tmp_path / "y.pt"), "cpu")
    assert torch.equal(moved["t"], torch.arange(12.0).reshape(3, 4).t()) and moved["u"].sum() == 4


def test_messages(tmp_path):
    def message(kind, tensors):
        with pytest.raises(kind) as caught:
            save_file(tensors, tmp_path / "x")
        return str(caught.value)

    assert message(ValueError, "notadict") == "Expected a dict of [str, torch.Tensor] but received <class 'str'>"
    assert message(ValueError, {"test": {"some": "thing"}}) == "Key `test` is invalid, expected torch.Tensor but received <class 'dict'>"
    assert message(ValueError, {"test": torch.sparse_coo_tensor(size=(2, 3))}) == (
        "You are trying to save a sparse tensors: `['test']` which this library does not support. You can make it a dense tensor before saving"
        " with `.to_dense()` but be aware this might make a much larger file than needed."
    )
    whole = torch.zeros(10, 10)
    assert "Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them again: [{" in message(
        RuntimeError, {"a": whole, "b": whole[:2]}
    )
    assert "A potential way to correctly save your model is to use `save_model`." in message(RuntimeError, {"a": whole, "b": whole[5:]})
    assert message(ValueError, {"a": whole.t()[:3]}).startswith("You are trying to save a non contiguous tensor: `a` which is not allowed. It either means you")
    assert "Cannot copy out of meta tensor" in message(RuntimeError, {"a": torch.zeros(2, device="meta")})
    assert not (tmp_path / "x").exists()


def test_disjoint_views_of_one_storage_are_saved(tmp_path):
    whole = torch.arange(10.0)
    save_file({"a": whole[:4], "b": whole[4:]}, tmp_path / "x")
    loaded = load_file(tmp_path / "x")
    assert loaded["a"].tolist() == [0, 1, 2, 3] and loaded["b"].tolist() == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("left", [0, 4, 12])
def test_a_storage_that_was_freed_is_refused(tmp_path, left):
    """As sharded training frees what is not gathered; in a process of its own, which once was killed."""
    program = f"""if True:
        import torch, ballast, ballast.torch as bt
        def freed():
            t = torch.ones(4)
            (t.untyped_storage() if hasattr(t, "untyped_storage") else t._storage()).resize_({left})
            return t
        for save in (bt.save, lambda d: bt.save_file(d, {str(tmp_path / "o")!r}), lambda d: ballast.save({str(tmp_path / "p")!r}, d)):
            try: save({{"a": freed()}})
            except ValueError as error: assert "has no memory" in str(error), error
            else: raise SystemExit("saved")
    """
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_tables_of_dtypes():
    assert _SIZE[torch.bfloat16] == 2 and _SIZE[torch.complex64] == 8
    assert _TYPES["BF16"] is torch.bfloat16 and _TYPES["BOOL"] is torch.bool


def test_files_of_pytorch_itself(tmp_path):
    state = {"w": torch.randn(3, 4), "h": torch.ones(2, dtype=torch.bfloat16), "t": torch.randn(4, 3).t(), "m": torch.tensor([True, False])}
    torch.save({"model": state, "epoch": 3}, tmp_path / "x.pt")
    for backend in ("mmap", "pread"):
        loaded = load_file(tmp_path / "x.pt", backend=backend)
        assert list(loaded) == list(state)
        for name, tensor in state.items():
            assert loaded[name].dtype == tensor.dtype and torch.equal(loaded[name], tensor)
        loaded["w"].zero_()
    assert torch.equal(load_file(tmp_path / "x.pt")["w"], state["w"])


def test_tied_tensors_stay_tied(tmp_path):
    shared = torch.randn(4)
    torch.save({"a": shared, "b": shared, "c": shared[1:3]}, tmp_path / "x.pt")
    with_load = ballast.open(tmp_path / "x.pt").load().torch()
    mapped = load_file(tmp_path / "x.pt")
    for loaded in (with_load, mapped):
        loaded["a"][1] = 7
        assert loaded["b"][1] == 7 and loaded["c"][0] == 7


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_sparse_tensors_whose_places_repeat_are_summed_as_pytorch_sums_them(dtype, tmp_path):
    values = torch.tensor([1, 0.0004, 0.0004, 0.004, 3, -1, 0.0004, 7]).to(getattr(torch, dtype))
    sparse = torch.sparse_coo_tensor(torch.tensor([[0, 0, 0, 1, 1, 1, 2, 0]]), values, (4,))
    torch.save({"x": sparse}, tmp_path / "x.pt")
    assert same(ballast.open(tmp_path / "x.pt")["x"].torch(), sparse.to_dense())


def test_dtypes_that_pytorchs_files_alone_hold_are_saved_there_and_named_elsewhere(tmp_path):
    for name in ("complex128", "complex32", "bits8", "bits16"):
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        size = torch.empty(0, dtype=dtype).element_size()
        tensor = torch.arange(4 * size, dtype=torch.uint8).view(dtype)
        ballast.save(tmp_path / f"{name}.pt", {"a": tensor})
        assert ballast.open(tmp_path / f"{name}.pt")["a"].tobytes() == bytes(range(4 * size))
        if name == "complex128" or hasattr(torch._utils, "_rebuild_tensor_v3"):  # the others have no storage of their own: PyTorch 2
            loaded = torch.load(tmp_path / f"{name}.pt")["a"]
            assert loaded.dtype == dtype and loaded.view(torch.uint8).tolist() == list(range(4 * size))
        with pytest.raises(SafetensorError, match='tensor "a" is .* which safetensors does not hold'):
            ballast.save(tmp_path / "x.safetensors", {"a": tensor})
    with pytest.raises(TypeError, match="tensor 'a' is torch.qint8, .* dequantize"):
        ballast.save(tmp_path / "x.pt", {"a": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)})
    assert not list(tmp_path.glob("x.*"))
