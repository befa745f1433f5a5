# SPDX-License-Identifier: Apache-2.0
"""Every framework alike: names, dtypes and indices. Frameworks Debian does not have are stubs here that do what the real ones did when they were tried;
tests/peers meets the real ones."""
import importlib
import inspect
import sys
import types

import numpy as np
import pytest

import ballast
import ballast.compat
from ballast import SafetensorError, TensorSpec, safe_open, serialize_file


class Foreign:
    """A tensor whose own indices mean something else than NumPy's."""

    def __init__(self, array, dtype=None):
        self.array = np.array(array)
        self.dtype = dtype or self.array.dtype.name
        self.shape = self.array.shape

    def __getitem__(self, index):
        raise AssertionError("the framework was asked to index")

    def view(self, dtype):
        return type(self)(self.array, dtype)

    def numpy(self):
        return self.array


def paddle_of(array, place=None):
    assert array.dtype != np.uint16, "Paddle takes uint16 for bfloat16"
    return Foreign(array)


def mlx_of(array, dtype=None):
    assert dtype is not None or array.dtype == np.int16, "MLX makes float32 of float64 unless it is told"
    return Foreign(array, dtype)


NAMES = "uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 complex64".split()


@pytest.fixture
def stubs(monkeypatch):
    jnp = types.SimpleNamespace(array=Foreign)
    paddle_names = {name: name for name in ["bool", "float64", "float8_e4m3fn", "float8_e5m2", *NAMES]}
    core = types.SimpleNamespace(array=mlx_of, bool_="bool_", float64="float64", **{name: name for name in NAMES})
    modules = {
        "tensorflow": types.SimpleNamespace(convert_to_tensor=Foreign, Tensor=Foreign), "jax": types.SimpleNamespace(Array=Foreign, numpy=jnp), "jax.numpy": jnp,
        "mlx": types.SimpleNamespace(core=core), "mlx.core": core, "paddle": types.SimpleNamespace(Tensor=Foreign, to_tensor=paddle_of, CPUPlace=lambda: "cpu", **paddle_names),
    }  # fmt: skip
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    for part in ("tensorflow", "flax", "mlx", "paddle"):
        monkeypatch.delitem(sys.modules, f"ballast.{part}", raising=False)
        monkeypatch.delattr(ballast, part, raising=False)
    yield
    for part in ("tensorflow", "flax", "mlx", "paddle"):
        sys.modules.pop(f"ballast.{part}", None)


EVERYWHERE = ["save", "save_file", "load", "load_file", "safe_open"]
CORE = ["TensorSpec", "deserialize", "serialize", "serialize_file"]
# Parameters of what the published package (0.8.0) has in each part, save(), save_file(), load() and load_file() apart.
PUBLISHED = {
    "numpy": {**dict.fromkeys(CORE), "_flatten": "tensor_dict keep_alive_buffer", "_getdtype": "dtype_str", "_view2np": "safeview", "_is_little_endian": "tensor"},
    "torch": {**dict.fromkeys(CORE), "_getdtype": "dtype_str", "_view2torch": "safeview", "_filter_shared_not_shared": "tensors state_dict", "_float8_e4m3fn": None, "_float8_e8m0": None},
    "tensorflow": {"numpy": None, "_np2tf": "numpy_dict", "_tf2np": "tf_dict"},
    "flax": {"numpy": None, "_np2jnp": "numpy_dict", "_jnp2np": "jnp_dict"},
    "mlx": {"numpy": None, "_np2mx": "numpy_dict", "_mx2np": "mx_dict"},
    "paddle": {
        **dict.fromkeys(CORE), "numpy": None, "_SIZE": None, "_TYPES": None, "NPDTYPES": None, "_getdtype": "dtype_str", "_view2paddle": "safeview device",
        "_to_ndarray": "tensor name", "_flatten": "tensors keep_alive_buffer", "_np2paddle": "numpy_dict device", "_paddle2np": "paddle_dict",
    },
}  # fmt: skip


@pytest.mark.parametrize("part", PUBLISHED)
def test_every_part_has_the_names_of_the_published_one(part, stubs):
    if part == "torch":
        pytest.importorskip("torch")
    ballast.compat.install(force=True)
    try:
        module = importlib.import_module(f"safetensors.{part}")
        for name in EVERYWHERE:
            assert hasattr(module, name), name
        assert module.safe_open is sys.modules["safetensors"].safe_open is ballast.compat.safe_open
        for name, parameters in PUBLISHED[part].items():
            assert hasattr(module, name), name
            if parameters is not None:
                assert " ".join(inspect.signature(getattr(module, name)).parameters) == parameters
        if part not in ("numpy", "torch"):
            assert module.numpy is sys.modules["safetensors.numpy"]
    finally:
        ballast.compat.uninstall()


def test_no_device_is_the_cpu(tmp_path):
    ballast.numpy.save_file({"a": np.ones(2)}, tmp_path / "x")
    for opener in (safe_open, ballast.compat.safe_open):
        with opener(tmp_path / "x", "np", device=None) as f:
            assert f.get_tensor("a").tolist() == [1, 1]
    if importlib.util.find_spec("torch"):
        assert ballast.torch.load_file(tmp_path / "x", device=None)["a"].tolist() == [1, 1]


def write(path, code, array):
    name = ballast._native.DTYPES[code]
    serialize_file({"a": TensorSpec(dtype=name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes)}, path)


@pytest.mark.parametrize("framework, part, lacks", [
    ("mlx", "mlx", ["F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"]),
    ("paddle", "paddle", ["U16", "U32", "U64", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"]),
])  # fmt: skip
def test_bits_arrive_under_their_own_dtype_or_are_refused(framework, part, lacks, stubs, tmp_path):
    module = importlib.import_module(f"ballast.{part}")
    for code, name in ballast._native.DTYPES.items():
        size = 8 if code in ("U64", "I64", "F64", "C64") else 4 if code in ("U32", "I32", "F32") else 2 if code in ("U16", "I16", "F16", "BF16") else 1
        if code == "F4":
            continue
        raw = np.arange(1, 6 * size + 1, dtype=np.uint8).reshape(6, size) % (2 if code == "BOOL" else 251)
        write(tmp_path / "x", code, np.ascontiguousarray(raw).view(f"u{size}").reshape(2, 3))
        ways = [lambda: module.load_file(tmp_path / "x")["a"], lambda: module.load((tmp_path / "x").read_bytes())["a"], lambda: safe_open(tmp_path / "x", framework).get_tensor("a")]
        for way in ways:
            if code in lacks:
                with pytest.raises(SafetensorError, match=f"{part} has no {name}"):
                    way()
            else:
                found = way()
                assert found.dtype in (name, f"{name}_") and found.array.shape == (2, 3) and found.array.tobytes() == raw.tobytes(), code


def test_what_is_no_tensor_says_so(stubs):
    for part, kind in (("paddle", "paddle.Tensor"), ("mlx", "mlx.core.array")):
        module = importlib.import_module(f"ballast.{part}")
        module.mx = types.SimpleNamespace(array=Foreign)  # in the stub it is a function
        with pytest.raises(ValueError, match=f"Key `a` is invalid, expected {kind} but received <class 'list'>"):
            module.save({"a": [1.0]})


def kinds(shape):
    rows = shape[0] if shape else 1
    return [
        0, -1, rows + 3, -rows - 3, np.int64(0), slice(1, 3), slice(-2, None), slice(0, rows + 10), slice(rows + 1, rows + 2), slice(2, 1), slice(None, None, 2),
        slice(None, None, -1), Ellipsis, None, (), (Ellipsis, 0), (slice(0, 2), slice(1, 3)), (0, None), (0,) * (len(shape) + 1), [], [0, 2], ([0, 1], slice(None)),
        [[0, 1], [1, 0]], ([0, 1], [1, 0]), [True, False], True, np.array([0, 2]), np.array([0, 1], np.uint8), np.arange(rows) % 2 == 0, np.ones(shape, bool), 1.0, "a",
    ]  # fmt: skip


def bits(tensor):
    if isinstance(tensor, Foreign):
        return tensor.array.shape, tensor.array.tobytes()
    array = tensor.numpy() if hasattr(tensor, "numpy") else np.asarray(tensor)
    return array.shape, array.tobytes()


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("framework", ["numpy", "torch", "tensorflow", "jax", "mlx", "paddle"])
def test_an_index_means_the_same_in_every_framework(framework, backend, stubs, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    for shape in [(10,), (4, 6), (3, 4, 5), (1, 7), (0, 3), ()]:
        array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        write(tmp_path / "x", "F32", array)
        with safe_open(tmp_path / "x", framework, backend=backend) as f:
            for index in kinds(shape):
                try:
                    wanted = array[index].shape, array[index].tobytes()
                except IndexError:
                    with pytest.raises((IndexError, TypeError, SafetensorError)):
                        f.get_slice("a")[index]
                    continue
                assert bits(f.get_slice("a")[index]) == wanted, (shape, index)
