# SPDX-License-Identifier: Apache-2.0
"""Bytes instead of files, pickles, copies, names that are flat, the command."""
import copy
import io
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import SOURCE

import ballast
import ballast.compat
import ballast.numpy
from ballast import SafetensorError, TensorSpec, safe_open

FILES = sorted((SOURCE / "tests/fixtures/torch/files").iterdir())


def described(file):
    return {name: (t.dtype, t.shape, t.tobytes() if t.has_data else None) for name, t in file.items()}


def test_bytes_are_opened_as_the_file_they_came_from():
    opened = 0
    for path in FILES:
        try:
            expected = ballast.open(path)
        except SafetensorError as error:
            with pytest.raises(SafetensorError) as caught:
                ballast.open(path.read_bytes())
            assert caught.value.code == error.code, path
            continue
        for data in (path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes()), io.BytesIO(path.read_bytes())):
            found = ballast.open(data)
            assert (found.format, found.metadata) == (expected.format, expected.metadata), path
            assert described(found) == described(expected), path
        opened += 1
    assert opened > 50


def test_a_file_object_is_read_from_where_it_stands(tmp_path):
    data = ballast.numpy.save({"a": np.arange(3.0)})
    file = io.BytesIO(b"before" + data)
    file.seek(6)
    assert np.array_equal(ballast.open(file)["a"], np.arange(3.0))
    (tmp_path / "a").write_bytes(data)
    with open(tmp_path / "a", "rb") as real:
        assert np.array_equal(ballast.open(real)["a"], np.arange(3.0))
    writable = ballast.open(data, writable=True)["a"].numpy()
    writable[0] = 7
    assert np.array_equal(ballast.open(data)["a"], np.arange(3.0))
    with pytest.raises(TypeError, match="binary mode"):
        ballast.open(io.StringIO("text"))
    with pytest.raises(ValueError, match="these are bytes"):
        ballast.open(data, io="direct")
    with pytest.raises(SafetensorError):
        ballast.open(b"")


def test_tensors_are_pickled_and_copied_by_value():
    arrays = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "s": np.float64(3), "e": np.zeros((0, 3), np.int8), "b": np.array([True, False])}
    file = ballast.open(ballast.numpy.save(arrays))
    for name, array in arrays.items():
        for made in [pickle.loads(pickle.dumps(file[name], protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)] + [copy.copy(file[name]), copy.deepcopy(file[name])]:
            assert isinstance(made, ballast.Tensor) and made.dtype == file[name].dtype
            assert made.shape == array.shape and np.array_equal(made.numpy(), array)
    view = file["x"][1, ::-1, 1:3]
    assert np.array_equal(pickle.loads(pickle.dumps(view)).numpy(), arrays["x"][1, ::-1, 1:3])
    made = copy.deepcopy(file["x"]).numpy()
    made[:] = 0
    assert np.array_equal(file["x"].numpy(), arrays["x"])


def test_checkpoints_are_pickled_with_their_metadata(tmp_path):
    ballast.save(tmp_path / "x.safetensors", {"b": np.arange(6.0).reshape(2, 3), "a": np.ones(2, np.int8)}, {"k": "v"})
    file = ballast.open(tmp_path / "x.safetensors")
    for made in (pickle.loads(pickle.dumps(file)), copy.deepcopy(file), pickle.loads(pickle.dumps(file.rename({"^a": "c"}).cast("F32"))).rename({"^c": "a"})):
        assert isinstance(made, ballast.Checkpoint) and made.metadata == {"k": "v"} and set(made) == {"a", "b"}
        assert np.array_equal(made["a"].numpy(), np.ones(2)) and np.array_equal(made["b"].numpy(), np.arange(6.0).reshape(2, 3))


def test_nested_dicts_are_refused_by_name(tmp_path):
    for nested in ({"encoder": {"weight": np.ones(2)}}, {"encoder": {}}):
        with pytest.raises(TypeError, match="'encoder' is a dict of tensors, and no tensor: names are flat, as in {'encoder.weight'"):
            ballast.save(tmp_path / "x.safetensors", nested)
    for wrong, word in (("text", "text"), (None, "None")):
        with pytest.raises(TypeError, match=f"'note' is {word}, and no tensor"):
            ballast.save(tmp_path / "x.safetensors", {"note": wrong})
    assert not (tmp_path / "x.safetensors").exists()


def test_shapes_of_specs_are_lists_as_the_published_ones():
    assert TensorSpec(dtype="float32", shape=(2, 3), data_ptr=0, data_len=24).shape == [2, 3]


def test_a_plain_import_has_the_core_as_an_attribute():
    program = "import ballast.compat; ballast.compat.install(); import safetensors; print(safetensors._safetensors_rust.__version__)"
    assert subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout == "0.8.0\n"


def test_the_command_is_part_of_the_package(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(ballast.numpy.save({"a": np.arange(3.0)}))

    def run(*words):
        return subprocess.run([sys.executable, "-B", "-m", "ballast", *words], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)

    listed = run("ls", "--json", "x.safetensors")
    assert listed.returncode == 0 and json.loads(listed.stdout)["tensors"][0]["name"] == "a", listed.stderr
    assert run("--version").stdout == f"ballast {ballast.__version__}\n"
    assert run("ls", "nowhere").returncode == 2


def spec(**other):
    return TensorSpec(**{"dtype": "float32", "shape": [2], "data_ptr": 0, "data_len": 8, **other})


# What safetensors 0.8.0 says to the same.
WORDS = [
    (lambda f: safe_open(3, "np"), TypeError, "argument 'filename': expected str, bytes or os.PathLike object, not int"),
    (lambda f: safe_open(f, 3), TypeError, "argument 'framework': 'int' object is not an instance of 'str'"),
    (lambda f: safe_open(f, "np").get_tensor(1), TypeError, "argument 'name': 'int' object is not an instance of 'str'"),
    (lambda f: safe_open(f, "np").get_slice(1), TypeError, "argument 'name': 'int' object is not an instance of 'str'"),
    (lambda f: ballast.deserialize("x"), TypeError, "argument 'bytes': 'str' object is not an instance of 'bytes'"),
    (lambda f: ballast.deserialize(None), TypeError, "argument 'bytes': 'None' is not an instance of 'bytes'"),
    (lambda f: spec(dtype=3), TypeError, "argument 'dtype': 'int' object is not an instance of 'str'"),
    (lambda f: spec(shape=[-1]), OverflowError, "can't convert negative int to unsigned"),
    (lambda f: spec(data_ptr=-1), OverflowError, "can't convert negative int to unsigned"),
    (lambda f: spec(shape="x"), TypeError, "argument 'shape': Can't extract `str` to `Vec`"),
    (lambda f: spec(shape=[1.5]), TypeError, "argument 'shape': 'float' object cannot be interpreted as an integer"),
    (lambda f: spec(data_len="x"), TypeError, "argument 'data_len': 'str' object cannot be interpreted as an integer"),
    (lambda f: setattr(spec(), "shape", [1]), AttributeError, "attribute 'shape' of 'builtins.TensorSpec' objects is not writable"),
    (lambda f: spec(dtype="nope"), SafetensorError, 'Unknown dtype "nope". Supported dtypes: bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, float64, '
     "bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn_x2, complex64"),
    (lambda f: ballast.serialize([1]), TypeError, "argument 'tensor_dict': 'list' object is not an instance of 'dict'"),
    (lambda f: ballast.serialize({"a": {}}), TypeError, "argument 'tensor_dict': 'dict' object is not an instance of 'TensorSpec'"),
    (lambda f: ballast.serialize({1: spec()}), TypeError, "argument 'tensor_dict': 'int' object is not an instance of 'str'"),
    (lambda f: ballast.numpy.save({1: np.ones(2)}), TypeError, "argument 'tensor_dict': 'int' object is not an instance of 'str'"),
    (lambda f: ballast.numpy.save({"a": np.ones(2)}, {"a": 1}), TypeError, "argument 'metadata': 'int' object is not an instance of 'str'"),
    (lambda f: exact(f, "x"), SafetensorError, "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
    (lambda f: exact(f, None), SafetensorError, "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
    (lambda f: exact(f, (0, 1.5)), SafetensorError, "Unsupported slice index at position 1: expected slice, int, or ellipsis"),
    (lambda f: exact(f, slice(None, None, -1)), SafetensorError, "Slice step must be a positive integer, got -1"),
    (lambda f: exact(f, (..., ...)), SafetensorError, "Only one ellipsis (...) is allowed in slice index"),
]  # fmt: skip


def exact(file, index):
    return ballast.compat.safe_open(file, "np").get_slice("a")[index]


def test_mistakes_are_called_what_the_published_package_calls_them(tmp_path):
    file = tmp_path / "x.safetensors"
    file.write_bytes(ballast.numpy.save({"a": np.zeros((2, 3), np.float32)}))
    for number, (act, kind, words) in enumerate(WORDS):
        with pytest.raises(kind) as caught:
            act(file)
        assert str(caught.value) == words, number
