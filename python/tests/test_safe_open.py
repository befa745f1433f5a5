# SPDX-License-Identifier: Apache-2.0
"""safe_open, TensorSpec, serialize: every method, and the reference's messages."""
import inspect
import pickle

import numpy as np
import pytest
from conftest import safetensors_bytes

import ballast
import ballast.compat
from ballast import SafetensorError, TensorSpec, safe_open, serialize, serialize_file
from ballast.numpy import load, save, save_file


@pytest.fixture
def path(tmp_path):
    tensors = {"b": np.arange(50, dtype=np.float32).reshape(10, 5), "a": np.arange(3, dtype=np.int8), "c": np.arange(2, dtype=np.int64)}
    save_file(tensors, tmp_path / "x.safetensors", {"format": "np", "by": "us"})
    return tmp_path / "x.safetensors"


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_names_metadata_and_tensors(path, backend):
    with safe_open(path, framework="np", backend=backend) as f:
        assert f.keys() == ["a", "b", "c"]
        assert f.offset_keys() == ["c", "b", "a"]
        assert f.metadata() == {"format": "np", "by": "us"}
        assert f.get_tensor("c").tolist() == [0, 1]
        tensors = f.get_tensors()
        assert list(tensors) == ["c", "b", "a"]
        assert tensors["b"].shape == (10, 5)


def test_offset_keys_follow_the_data_and_not_the_header(written):
    header = '{"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    path = written(safetensors_bytes(header, b"\x01\x02"))
    for backend in ("mmap", "pread"):
        with safe_open(path, "np", backend=backend) as f:
            assert f.offset_keys() == ["y", "x"]
            assert list(f.get_tensors()) == ["y", "x"]


def test_no_metadata_is_none(tmp_path):
    save_file({}, tmp_path / "x")
    with safe_open(tmp_path / "x", "np") as f:
        assert f.metadata() is None and f.keys() == []


def test_tensors_outlive_the_file(path):
    with safe_open(path, "np") as f:
        array, part = f.get_tensor("b"), f.get_slice("b")
    path.unlink()
    assert array.sum() == 1225
    assert part[1].tolist() == [5, 6, 7, 8, 9]


def test_a_closed_file_is_closed(path):
    with safe_open(path, "np") as f:
        pass
    for call in (f.keys, f.offset_keys, f.metadata, f.get_tensors, lambda: f.get_tensor("a"), lambda: f.get_slice("a")):
        with pytest.raises(SafetensorError, match="^File is closed$"):
            call()


def test_messages(path, tmp_path):
    def message(call):
        with pytest.raises(SafetensorError) as caught:
            call()
        return str(caught.value)

    assert message(lambda: safe_open(path, "np").get_tensor("q")) == "File does not contain tensor q"
    assert message(lambda: safe_open(path, "np").get_slice("q")) == "File does not contain tensor q"
    assert message(lambda: safe_open(path, "caffe")) == "framework caffe is invalid"
    assert message(lambda: safe_open(path, "pt", device="gpu9")) == "device gpu9 is invalid"
    assert message(lambda: safe_open(path, "np", device="cuda:0")) == "Device cuda:0 is not supported for framework numpy"
    assert message(lambda: safe_open(path, "np", backend="x")) == 'backend "x" is invalid (expected one of: "mmap", "pread")'


def test_a_missing_file_is_two_kinds_of_error(tmp_path):
    missing = str(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError) as caught:
        safe_open(missing, "np")
    assert str(caught.value) == f"No such file or directory: {missing}"
    assert isinstance(caught.value, SafetensorError) and caught.value.code == "file-not-found" and caught.value.errno == 2


def test_a_file_that_may_not_be_read(path):
    path.chmod(0)
    try:
        open(path, "rb").close()
        pytest.skip("nothing is forbidden here")
    except PermissionError:
        pass
    with pytest.raises(PermissionError) as caught:
        safe_open(path, "np")
    assert isinstance(caught.value, SafetensorError)


def test_errors_can_be_pickled_and_imported():
    error = SafetensorError("text", "bad-json", "file", "more")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.code, copy.where, copy.detail) == ("text", "bad-json", "file", "more")
    module = __import__(SafetensorError.__module__)
    assert module.SafetensorError is SafetensorError is ballast.Error


def test_errors_of_the_system_name_their_file(tmp_path):
    gone, folder = tmp_path / "gone", tmp_path / "folder"
    folder.mkdir()
    calls = [
        (lambda: ballast.open(gone), FileNotFoundError, gone), (lambda: safe_open(gone, "np"), FileNotFoundError, gone), (lambda: ballast.scan(gone), FileNotFoundError, gone),
        (lambda: safe_open(folder, "np"), IsADirectoryError, folder), (lambda: ballast.numpy.load_file(folder), IsADirectoryError, folder),
    ]  # fmt: skip
    for call, kind, name in calls:
        with pytest.raises(kind) as caught:
            call()
        with pytest.raises(kind) as wanted:
            open(name, "rb")
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            assert isinstance(error, SafetensorError) and (error.errno, error.filename) == (wanted.value.errno, str(wanted.value.filename))


def test_everything_public_says_what_it_is(path):
    for name in ballast.__all__:
        thing = getattr(ballast, name)
        members = [(f"{name}.{member}", getattr(thing, member)) for member in vars(thing) if not member.startswith("_")] if isinstance(thing, type) else []
        for what, value in [(name, thing), *members]:
            assert not callable(value) or value.__doc__, what
    assert [str(inspect.signature(call)) for call in (ballast.thread_count, ballast.set_thread_count)] == ["()", "(count, /)"]
    with safe_open(path, "np") as f:
        assert (repr(f), repr(f.get_slice("b"))) == ("<safe_open: 3 tensors, numpy>", "<slice of F32 [10, 5]>")
    assert repr(f) == "<safe_open: closed, numpy>"


INDICES = [
    (), slice(None), slice(2), slice(2, None), slice(-3, None), slice(None, -3), slice(None, None, 3), slice(None, None, -1),
    slice(8, 2, -2), slice(20), slice(3, 100), slice(5, 2), slice(-100, 100), 0, -1, 9, -10, (slice(None), 0), (slice(2, None), -1),
    (slice(None), slice(None, 2)), (3, slice(1, 4)), (slice(2, 8, 2), slice(None, None, 2)), (slice(None), slice(4, None, -2)), (1, 2), (-1, -1),
    Ellipsis, (Ellipsis, 0), (0, Ellipsis), (Ellipsis, slice(1)), None, (None, 0), (slice(None), None, slice(2)), (Ellipsis, None), [],
    [1, 2], ([0, 1], slice(None)), np.arange(10) > 4, (np.int64(2), slice(None)), (slice(0, 0), slice(None)),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("index", INDICES, ids=[str(i) for i in range(len(INDICES))])
def test_slices_are_numpys(path, index, backend):
    whole = np.arange(50, dtype=np.float32).reshape(10, 5)
    with safe_open(path, "np", backend=backend) as f:
        part = f.get_slice("b")
        assert part.get_shape() == [10, 5] and part.get_dtype() == "F32"
        found = part[index]
    expected = whole[index]
    assert isinstance(found, np.ndarray)
    assert found.shape == expected.shape and np.array_equal(found, expected)


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_random_slices_are_numpys(tmp_path, backend):
    random = np.random.default_rng(8)
    for shape in ((7,), (4, 6), (3, 1, 5), (2, 3, 4, 2)):
        whole = random.integers(0, 1000, shape).astype(np.int16)
        save_file({"x": whole}, tmp_path / "x")
        with safe_open(tmp_path / "x", "np", backend=backend) as f:
            part = f.get_slice("x")
            for _ in range(200):
                index = []
                for n in shape[: random.integers(0, len(shape) + 1)]:
                    kind = random.integers(0, 4)
                    bound = lambda: None if random.integers(0, 3) == 0 else int(random.integers(-n - 3, n + 4))  # noqa: E731,B023
                    step = [None, 1, 2, 3, -1, -2][random.integers(0, 6)]
                    index.append(int(random.integers(-n, n)) if kind == 0 else slice(bound(), bound(), step))
                index = tuple(index)
                assert np.array_equal(part[index], whole[index]), index


def test_slices_outside_the_tensor(path):
    with safe_open(path, "np") as f:
        part = f.get_slice("b")
        for index, text in [
            ((slice(2, None), -6), "Invalid index -6 for dimension 1 of size 5"),
            ((slice(2, None), 20), "Error during slicing [2:, 20] with shape [10, 5]: index 20 out of bounds for tensor dimension #1 of size 5"),
            (10, "Error during slicing [10] with shape [10, 5]: index 10 out of bounds for tensor dimension #0 of size 10"),
            ((0, 0, 0), "Error during slicing [0, 0, 0] with shape [10, 5]: more slicing indexes than dimensions in tensor"),
        ]:
            with pytest.raises(SafetensorError) as caught:
                part[index]
            assert str(caught.value) == text
            assert isinstance(caught.value, IndexError)


def test_exact_slices_refuse_what_the_reference_does(path):
    with ballast.compat.safe_open(path, "np") as f:
        part = f.get_slice("b")
        assert part[[]].shape == (0, 5) and part[()].shape == (10, 5) and part[2:, -5].shape == (8,)
        for index, text in [
            ([0, 1], "Non empty lists are not implemented"),
            (slice(20), "Error during slicing [:20] with shape [10, 5]: index 19 out of bounds for tensor dimension #0 of size 10"),
            ((slice(None), slice(20)), "Error during slicing [:, :20] with shape [10, 5]: index 19 out of bounds for tensor dimension #1 of size 5"),
            (slice(12, 20), "Error during slicing [12:20] with shape [10, 5]: index 12 out of bounds for tensor dimension #0 of size 10"),
            ((slice(20), slice(30)), "Error during slicing [:20, :30] with shape [10, 5]: index 29 out of bounds for tensor dimension #1 of size 5"),
        ]:
            with pytest.raises(SafetensorError) as caught:
                part[index]
            assert str(caught.value) == text


def test_handles_are_opened_by_their_name(path):
    with open(path, "rb") as file:
        with ballast._safe_open_handle(file, framework="np") as f:
            assert f.keys() == ["a", "b", "c"]


def spec(array, dtype=None):
    return TensorSpec(dtype=dtype or array.dtype.name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes)


def test_specs_are_serialized(tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    data = serialize({"x": spec(array)}, {"k": "v"})
    assert data == save({"x": array}, {"k": "v"})
    serialize_file({"x": spec(array)}, tmp_path / "x", metadata={"k": "v"})
    assert (tmp_path / "x").read_bytes() == data


def test_specs_are_what_they_are():
    array = np.zeros(3, np.uint8)
    made = spec(array)
    assert (made.dtype, tuple(made.shape), made.data_len) == ("U8", (3,), 3)
    with pytest.raises(AttributeError):
        made.shape = (1,)
    with pytest.raises(TypeError):
        TensorSpec("uint8", (3,), 0, 3)
    assert tuple(spec(np.zeros((2, 3), np.uint8), "float4_e2m1fn_x2").shape) == (2, 6)


def test_specs_take_what_the_published_ones_take():
    """Texts and verdicts of the published 0.8.0; tests/peers/calls.py asks it itself."""
    made = TensorSpec(dtype="float32", shape=[0, 2**63], data_ptr=0, data_len=0)
    assert made.shape == [0, 2**63]
    made.shape.append(1)
    assert made.shape == [0, 2**63]
    for shape, kind, text in [
        (iter([2]), TypeError, "argument 'shape': 'list_iterator' object is not an instance of 'Sequence'"),
        (None, TypeError, "argument 'shape': 'None' is not an instance of 'Sequence'"),
        ({2: 3}, TypeError, "argument 'shape': 'dict' object is not an instance of 'Sequence'"),
        ([2**64], OverflowError, "int too big to convert"),
        ([-1], OverflowError, "can't convert negative int to unsigned"),
    ]:
        with pytest.raises(kind) as caught:
            TensorSpec(dtype="float32", shape=shape, data_ptr=0, data_len=0)
        assert str(caught.value) == text
    for call in (lambda: delattr(made, "dtype"), lambda: setattr(made, "other", 1)):
        with pytest.raises(AttributeError):
            call()
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(made)


@pytest.mark.parametrize("shape, size", [([2**63], 8), ([0, 2**63], 0), ([2**62], 8), ([2**40, 2**40], 8), ([2**32, 2**32, 0], 0)])
def test_dimensions_too_large_are_one_error(shape, size, tmp_path):
    array = np.zeros(2, np.float32)
    wide = {"x": TensorSpec(dtype="float32", shape=shape, data_ptr=array.ctypes.data, data_len=size)}
    for call in (lambda: serialize(wide), lambda: serialize_file(wide, tmp_path / "x")):
        with pytest.raises(SafetensorError) as caught:
            call()
        assert str(caught.value) == "Error while serializing: overflow computing buffer size from shape and/or element type"
        assert caught.value.code == "size-overflow"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "device, kind, text",
    [
        ("cuda:x", ValueError, "invalid digit found in string"), ("cuda:", ValueError, "cannot parse integer from empty string"), ("cuda:0:0", SafetensorError, "device cuda:0:0 is invalid"),
        ("mps:1", SafetensorError, "device mps:1 is invalid: only mps or mps:0 is supported"), (-1, SafetensorError, "device -1 is invalid"), (2**64, SafetensorError, f"device {2**64} is invalid"),
        ("cuda", SafetensorError, "Device cuda:0 is not supported for framework numpy"), (True, SafetensorError, "Device 1 is not supported for framework numpy"),
    ],
)  # fmt: skip
def test_devices_that_are_none(path, device, kind, text):
    with pytest.raises(kind) as caught:
        safe_open(path, "np", device=device)
    assert str(caught.value) == text


def test_whatever_cannot_be_opened_is_not_found(tmp_path):
    """As the published one: a file in the place of a folder, a name that is too long, a NUL."""
    (tmp_path / "file").write_bytes(b"")
    for name in ("none", "file/x", "x" * 300, "a\0b"):
        with pytest.raises(FileNotFoundError) as caught:
            safe_open(str(tmp_path / name), "np")
        assert str(caught.value) == f"No such file or directory: {tmp_path / name}"


def test_specs_that_are_wrong():
    array = np.zeros(3, np.float32)
    with pytest.raises(SafetensorError, match='^Unknown dtype "float31". Supported dtypes: '):
        spec(array, "float31")
    with pytest.raises(TypeError, match="TensorSpec"):
        serialize({"x": {"dtype": "float32", "shape": [1], "data": b""}})
    wrong = TensorSpec(dtype="float32", shape=[2, 2], data_ptr=array.ctypes.data, data_len=12)
    with pytest.raises(SafetensorError) as caught:
        serialize({"x": wrong})
    assert str(caught.value) == "Error while serializing: invalid shape, data type, or offset for tensor"  # the published 0.8.0's words
    assert "tensor of type F32 and shape (2, 2) can't be created from 12 bytes" in caught.value.detail


@pytest.mark.parametrize("name", ["uint16", "int8", "bool"])
def test_all_names_of_dtypes_are_taken(name):
    assert load(serialize({"x": spec(np.ones(2, name))}))["x"].dtype == np.dtype(name)
