# SPDX-License-Identifier: Apache-2.0
"""ballast.numpy against what safetensors.numpy does: bytes, semantics, messages."""
import pathlib

import numpy as np
import pytest
from conftest import safetensors_bytes

import ballast
from ballast import SafetensorError, deserialize, safe_open
from ballast.numpy import load, load_file, save, save_file

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64"]


def test_writes_the_bytes_of_the_specification():
    array = np.zeros((2, 2), dtype=np.int32)
    array[1, 1] = 1
    text = '{"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}}'
    assert len(text) == 60  # and so four spaces to a multiple of eight
    assert save({"test": array}) == safetensors_bytes(text + "    ", bytes(12) + b"\x01\x00\x00\x00")


def test_order_of_the_dict_does_not_matter():
    array = np.zeros((2, 2), dtype=np.int32)
    assert save({"a": array, "b": array}) == save({"b": array, "a": array})


def test_larger_dtypes_come_first_then_names():
    data = save({"b": np.ones(1, np.float16), "a": np.ones(1, np.float16), "z": np.ones(1, np.int64), "m": np.ones(3, np.uint8)})
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    places = [header.index(b'"%s"' % name) for name in (b"z", b"a", b"b", b"m")]
    assert places == sorted(places)
    assert int.from_bytes(data[:8], "little") % 8 == 0


def test_metadata_comes_first_in_the_header():
    data = save({"a": np.zeros(1, np.int8)}, {"framework": "np"})
    assert data[8:].startswith(b'{"__metadata__":{"framework":"np"},"a":')


@pytest.mark.parametrize("name", DTYPES)
def test_round_trip_of_every_dtype(name, tmp_path):
    array = np.arange(12).reshape(3, 4).astype(name)
    save_file({"x": array}, tmp_path / "x.safetensors")
    for loaded in (load_file(tmp_path / "x.safetensors"), load(save({"x": array})), load_file(tmp_path / "x.safetensors", backend="pread")):
        assert loaded["x"].dtype == array.dtype
        assert np.array_equal(loaded["x"], array)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (2, 0, 3), (1, 1, 1, 1, 1, 1, 1, 1)])
def test_round_trip_of_odd_shapes(shape, tmp_path):
    array = np.ones(shape, np.float32)
    save_file({"x": array}, tmp_path / "x")
    assert load_file(tmp_path / "x")["x"].shape == shape
    assert load(save({"x": array}))["x"].shape == shape


VIEWS = {
    "fortran": lambda a: np.asfortranarray(a),
    "transposed": lambda a: a.T,
    "stepped": lambda a: a[::2, 1::2],
    "reversed": lambda a: a[::-1, ::-1],
    "row reversed": lambda a: a[::-1],
    "column": lambda a: a[:, 1],
    "broadcast": lambda a: np.broadcast_to(a[0], (3, 6)),
    "new axis": lambda a: a[:, None, ::3],
    "empty step": lambda a: a[5:2:1],
    "field of a record": lambda a: np.array([(i, i * 2.5) for i in range(4)], dtype=[("n", "i1"), ("x", "f4")])["x"],
    "big-endian": lambda a: a.astype(">f4"),
    "big-endian, transposed": lambda a: a.astype(">f4").T,
}


@pytest.mark.parametrize("name", VIEWS)
def test_any_memory_order_is_saved_right(name):
    array = VIEWS[name](np.arange(24, dtype=np.float32).reshape(4, 6))
    loaded = load(save({"x": array}))["x"]
    assert loaded.dtype == np.float32
    assert np.array_equal(loaded, array)


def test_saving_leaves_the_array_as_it_is():
    array = np.arange(4, dtype=">i4")
    tensors = {"x": array}
    save(tensors)
    assert tensors == {"x": array} and array.dtype == ">i4" and array[1] == 1


def test_what_is_no_array_says_so():
    with pytest.raises(AttributeError, match="'list' object has no attribute 'dtype'"):
        save({"x": [1, 2]})
    with pytest.raises(SafetensorError, match='Unknown dtype "object"'):
        save({"x": np.array([{}, {}])})
    with pytest.raises(SafetensorError, match='Unknown dtype "complex128"'):
        save({"x": np.zeros(2, np.complex128)})


def test_metadata_is_text():
    with pytest.raises(TypeError):
        save({"x": np.zeros(1)}, {"epoch": 3})
    with pytest.raises(TypeError):
        save({"x": np.zeros(1)}, "text")


def test_paths_may_be_any_path(tmp_path):
    save_file({"x": np.zeros(1)}, str(tmp_path / "s"))
    save_file({"x": np.zeros(1)}, pathlib.Path(tmp_path / "p"))
    assert (tmp_path / "s").read_bytes() == (tmp_path / "p").read_bytes()
    assert load_file(pathlib.Path(tmp_path / "s")).keys() == {"x"}


def test_saved_files_have_the_mode_of_others(tmp_path):
    save_file({"x": np.zeros(1)}, tmp_path / "x")
    (tmp_path / "y").write_text("")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode


def test_a_failed_save_leaves_the_old_file(tmp_path):
    save_file({"x": np.zeros(1)}, tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    with pytest.raises(SafetensorError) as caught:
        save_file({"__metadata__": np.zeros(1)}, tmp_path / "x")
    assert caught.value.code == "bad-name"
    assert str(caught.value).startswith("Error while serializing: ")
    assert (tmp_path / "x").read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_a_file_can_be_saved_over_itself(tmp_path):
    save_file({"x": np.arange(100_000)}, tmp_path / "x")
    save_file(load_file(tmp_path / "x"), tmp_path / "x")
    assert np.array_equal(load_file(tmp_path / "x")["x"], np.arange(100_000))


def test_loaded_arrays_may_be_written_and_the_file_stays(tmp_path):
    save_file({"x": np.zeros(10)}, tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    array = load_file(tmp_path / "x")["x"]
    array += 1
    assert array.sum() == 10
    assert (tmp_path / "x").read_bytes() == before
    assert load_file(tmp_path / "x")["x"].sum() == 0
    save_file({"x": array}, tmp_path / "y")  # what was written, not what the file says
    assert load_file(tmp_path / "y")["x"].sum() == 10


def test_loaded_arrays_own_what_they_show(tmp_path):
    array = load(save({"x": np.arange(5)}))["x"]
    array[0] = 7
    assert array.tolist() == [7, 1, 2, 3, 4]


def test_deserialize_gives_names_and_bytes():
    assert deserialize(save({"a": np.array([1, 2], np.int16)})) == [("a", {"shape": [2], "dtype": "I16", "data": bytearray(b"\x01\x00\x02\x00")})]


def test_unaligned_headers_are_read():
    text = '{"t":{"dtype":"F64","shape":[2],"data_offsets":[0,16]} }'
    text += " " * (61 - len(text))
    data = safetensors_bytes(text, np.array([1.5, 2.5]).tobytes())
    assert load(data)["t"].tolist() == [1.5, 2.5]


def test_bfloat16_needs_ml_dtypes(written):
    path = written(safetensors_bytes('{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}', b"\x80\x3f\x00\x40"))
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        with pytest.raises(TypeError, match="data type 'bfloat16' not understood"):
            load_file(path)
    else:
        assert load_file(path)["x"].astype(np.float32).tolist() == [1.0, 2.0]
    assert ballast.open(path)["x"].to("F32").numpy().tolist() == [1.0, 2.0]
    assert ballast.open(path)["x"].bits().numpy().tolist() == [0x3F80, 0x4000]


def test_dtypes_numpy_does_not_have(written):
    path = written(safetensors_bytes('{"x":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}', b"\x21"))
    with pytest.raises(SafetensorError, match="Dtype not understood: F4"):
        load_file(path)
    with safe_open(path, "np") as f:
        assert f.get_slice("x").get_dtype() == "F4"
    assert ballast.open(path)["x"].to("F32").numpy().tolist() == [0.5, 1.0]


def test_files_of_pytorch_are_read_as_their_state_dict():
    net = pathlib.Path(__file__).resolve().parents[2] / "examples/import_weights/net.pt"
    for backend in ("mmap", "pread"):
        loaded = load_file(net, backend=backend)
        assert len(loaded) == 16 and loaded["head.bias"].shape == (10,)
        assert np.array_equal(loaded["head.weight"], ballast.open(net)["model.head.weight"].numpy())
    with pytest.raises(ballast.SafetensorError, match="backend"):
        load_file(net, backend="both")
