# SPDX-License-Identifier: Apache-2.0
"""Dtypes by every name they have, numbers out of tensors, and what PyTorch and Paddle keep apart from the bytes."""
import os
import struct
import sys
import types

import numpy as np
import pytest

import ballast

NUMPY = {"b1": "BOOL", "u1": "U8", "i1": "I8", "i2": "I16", "u2": "U16", "f2": "F16", "i4": "I32", "u4": "U32", "f4": "F32", "f8": "F64",
         "i8": "I64", "u8": "U64"}  # fmt: skip


def one(value, dtype):
    return ballast.checkpoint({"x": np.full((1,), value, dtype)})["x"]


@pytest.mark.parametrize("letters, code", NUMPY.items())
def test_numpy_s_spellings_mean_what_they_mean_to_numpy(letters, code):
    dtype = np.dtype(letters)
    source = one(1, np.float64)
    for spelling in {letters, "<" + letters, "=" + letters, dtype.str, dtype.name, dtype, dtype.type}:
        if spelling == "|" + letters or np.dtype(spelling) == dtype:
            assert source.to(spelling).dtype == code, spelling
            assert source.to(spelling).numpy().dtype == dtype
    assert source.to(code).dtype == code  # Safetensors' own code, in capitals, is never anything else


def test_torch_s_spellings_mean_what_they_mean_to_torch():
    torch = pytest.importorskip("torch")
    source = one(1, np.float64)
    names = ["float16", "float32", "float64", "bfloat16", "half", "float", "double", "short", "int", "long", "int8", "uint8", "int16", "int32", "int64", "bool"]
    for name in names:
        dtype = getattr(torch, name)
        for spelling in (dtype, str(dtype), "torch." + name):
            assert source.to(spelling).torch().dtype == dtype, spelling


def test_f4_in_capitals_stays_four_bits(tmp_path):
    source = {"x": np.array([1.0, 2.0, 100.0, 1e6], np.float64)}
    assert ballast.checkpoint(source)["x"].to("F4").dtype == "F4"
    ballast.save(tmp_path / "x.safetensors", source)
    done = ballast.convert(tmp_path / "x.safetensors", tmp_path / "y.safetensors", dtype="f4")
    assert (done.rounded, done.overflowed) == (0, 0)
    assert ballast.open(tmp_path / "y.safetensors")["x"].numpy().tolist() == [1.0, 2.0, 100.0, 1e6]
    for dtype in (np.float16, "f2", "F16"):
        ballast.convert(tmp_path / "x.safetensors", tmp_path / "y.safetensors", dtype=dtype, overwrite=True)
        assert ballast.open(tmp_path / "y.safetensors")["x"].dtype == "F16"
        assert ballast.open(tmp_path / "x.safetensors").cast(dtype)["x"].dtype == "F16"


@pytest.mark.parametrize("dtype", [np.dtype(letters) for letters in NUMPY])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_tensor_of_one_element_is_its_number(dtype, shape):
    for value in (0, 1, 49):  # 49 is the text "1" as a byte
        array = np.full(shape, value, dtype)
        tensor = ballast.checkpoint({"x": array})["x"]
        assert int(tensor) == int(array)
        assert float(tensor) == float(array)
        assert complex(tensor) == complex(array)
        assert bool(tensor) == bool(array)
        if dtype.kind in "iu":
            assert range(100)[tensor] == value
        else:
            with pytest.raises(TypeError):
                range(100)[tensor]


def test_more_than_one_element_is_no_number():
    tensor = ballast.checkpoint({"x": np.array([49, 50], np.uint8)})["x"]  # "12", as text
    for number in (int, float, complex, bool):
        with pytest.raises(ValueError, match="one element"):
            number(tensor)


def test_large_integers_are_exact():
    assert int(one(2**63 - 1, np.int64)) == 2**63 - 1
    assert int(one(2**64 - 1, np.uint64)) == 2**64 - 1


def test_metadata_given_to_checkpoint_is_there(tmp_path):
    ballast.save(tmp_path / "x.safetensors", {"x": np.ones(2)}, {"old": "1"})
    opened = ballast.open(tmp_path / "x.safetensors")
    for source in (opened, tmp_path / "x.safetensors", {"x": np.ones(2)}):
        made = ballast.checkpoint(source, {"license": "MIT"})
        assert made.metadata == {"license": "MIT"}
        assert made["x"].numpy().tolist() == [1, 1]
    assert ballast.checkpoint(opened) is opened
    ballast.save(tmp_path / "y.safetensors", opened, {"license": "MIT"})
    assert ballast.open(tmp_path / "y.safetensors").metadata == {"license": "MIT"}


@pytest.mark.parametrize("load", ["numpy.load_file", "torch.load_file", "safe_open"])
def test_a_number_is_no_file_name_and_the_descriptor_stays_open(tmp_path, load):
    if load.startswith("torch"):
        pytest.importorskip("torch")
        import ballast.torch
    import ballast.numpy

    path = tmp_path / "x.safetensors"
    ballast.numpy.save_file({"x": np.ones(2, np.float32)}, path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(TypeError):
            if load == "safe_open":
                ballast.safe_open(descriptor, "np")
            else:
                getattr(getattr(ballast, load.split(".")[0]), "load_file")(descriptor)
        assert os.pread(descriptor, 8, 0)  # an OSError when somebody closed it
    finally:
        os.close(descriptor)


def test_what_pytorch_still_has_to_do_to_the_bytes_is_done(tmp_path):
    torch = pytest.importorskip("torch")
    import ballast.torch

    z = torch.tensor([[1 + 2j, 3 - 4j], [5j, -6 + 0j]], dtype=torch.complex64)
    lazy = {"conj": z.conj(), "neg": torch._neg_view(torch.tensor([1.0, -2.0])), "both": torch._neg_view(z.conj()), "plain": z.clone()}
    assert lazy["conj"].is_conj() and lazy["neg"].is_neg()
    expected = {name: tensor.clone() for name, tensor in lazy.items()}
    lazy["conj"] = z.clone().conj()
    ballast.torch.save_file(lazy, tmp_path / "x.safetensors")
    ballast.save(tmp_path / "y.safetensors", lazy)
    ballast.save(tmp_path / "z.pt", lazy)
    for loaded in (ballast.torch.load(ballast.torch.save(lazy)), ballast.torch.load_file(tmp_path / "x.safetensors"),
                   ballast.torch.load_file(tmp_path / "y.safetensors"), torch.load(tmp_path / "z.pt")):  # fmt: skip
        for name, tensor in expected.items():
            assert torch.equal(loaded[name], tensor), name


class PaddleTensor:
    """What Paddle's tensors say of themselves: bfloat16 is uint16 to NumPy, the 8-bit floats are int8."""

    def __init__(self, name, array):
        self._array = array
        self.dtype = type("dtype", (), {"__str__": lambda _: "paddle." + name})()

    def numpy(self):
        return self._array


def test_paddle_s_bfloat16_is_bfloat16(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "paddle", types.SimpleNamespace(Tensor=PaddleTensor))
    monkeypatch.delitem(sys.modules, "ballast.paddle", raising=False)
    import ballast.paddle

    bits = np.array([0x3F80, 0x4049], np.uint16)  # 1.0 and 3.140625
    tensors = {
        "bf16": PaddleTensor("bfloat16", bits), "u16": PaddleTensor("uint16", bits), "f8": PaddleTensor("float8_e4m3fn", np.array([56], np.int8)),
        "f32": PaddleTensor("float32", np.ones((2, 2), np.float32)), "flag": PaddleTensor("bool", np.array([True])),
    }  # fmt: skip
    ballast.paddle.save_file(tensors, tmp_path / "x.safetensors")
    written = ballast.open(tmp_path / "x.safetensors")
    assert {name: tensor.dtype for name, tensor in written.items()} == {"bf16": "BF16", "u16": "U16", "f8": "F8_E4M3", "f32": "F32", "flag": "BOOL"}
    assert written["bf16"].to("F32").numpy().tolist() == [1.0, 3.140625]
    assert (tmp_path / "x.safetensors").read_bytes() == ballast.paddle.save(tensors)
    assert struct.unpack("<2H", written["bf16"].tobytes()) == (0x3F80, 0x4049)
