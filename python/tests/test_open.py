# SPDX-License-Identifier: Apache-2.0
"""ballast.open: files of every format as mappings, with NumPy alone and with PyTorch."""
import collections
import io
import itertools
import json
import pickle
import zipfile

import numpy as np
import pytest
from conftest import SOURCE

import ballast
from ballast import SafetensorError

FILES = sorted((SOURCE / "tests/fixtures/torch/files").iterdir())


def test_a_checkpoint_is_a_mapping(tmp_path):
    ballast.save(tmp_path / "x.safetensors", {"b": np.arange(6.0).reshape(2, 3), "a": np.ones(2, np.int8)}, {"k": "v"})
    with ballast.open(tmp_path / "x.safetensors") as f:
        assert isinstance(f, collections.abc.Mapping)
        assert len(f) == 2 and set(f) == {"a", "b"} and "a" in f and "q" not in f and 3 not in f
        assert list(f.keys()) == list(f) and [t.dtype for t in f.values()] == [f[n].dtype for n in f]
        assert dict(f.items()).keys() == {"a", "b"} and f.get("q") is None and f.get("a").shape == (2,)
        assert f.metadata == {"k": "v"} and f.format == "safetensors" and f.path.endswith("x.safetensors") and f.notes == []
        assert f.nbytes == 50 and f.describe("b") == ("F64", (2, 3), 48)
        with pytest.raises(KeyError) as caught:
            f["c"]
        assert isinstance(caught.value, SafetensorError) and caught.value.code == "not-found" and "did you mean" in str(caught.value)


def test_tensors_are_lazy_views(tmp_path):
    whole = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    ballast.save(tmp_path / "x.safetensors", {"x": whole})
    t = ballast.open(tmp_path / "x.safetensors")["x"]
    assert (t.dtype, t.shape, t.strides, t.ndim, t.size, t.nbytes, len(t)) == ("F32", (2, 3, 4), (12, 4, 1), 3, 24, 96, 2)
    assert repr(t) == "Tensor(F32 [2, 3, 4])" and t.is_contiguous and t.has_data and not t.writable
    assert np.array_equal(t[1, ::-1, 1:3].numpy(), whole[1, ::-1, 1:3])
    assert np.array_equal(t.T.numpy(), whole.T) and np.array_equal(t.permute(2, 0, 1), whole.transpose(2, 0, 1))
    assert np.array_equal(t.reshape(6, 4), whole.reshape(6, 4)) and np.array_equal(t.reshape((4, -1)), whole.reshape(4, -1))
    assert [part.shape for part in t] == [(3, 4), (3, 4)]
    assert t.tobytes() == whole.tobytes() and t[:, 0].tobytes() == whole[:, 0].tobytes()
    assert t.tolist() == whole.tolist() and t[1, 2, 3].item() == 23.0
    for index in (2, (0, 0, 0, 0), (0, -4)):
        with pytest.raises(IndexError):
            t[index]
    bounds = (None, 0, 1, 3, -1, -4, 2**31, 2**63 - 1, 2**63, 10**30, -(2**63), -(2**63) - 1, -(10**30))
    for start, stop, step in itertools.product(bounds, bounds, [b for b in bounds if b != 0]):
        assert np.array_equal(t[0, start:stop:step].numpy(), whole[0, start:stop:step]), (start, stop, step)
    with pytest.raises(TypeError):
        t["a"]
    with pytest.raises(TypeError):
        type(t)()


def test_arrays_of_a_file_are_read_only_unless_asked(tmp_path):
    path = tmp_path / "x.safetensors"
    ballast.save(path, {"x": np.zeros(4)})
    array = ballast.open(path)["x"].numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    array = ballast.open(path, writable=True)["x"].numpy()
    array[0] = 1
    assert ballast.open(path)["x"].tolist() == [0, 0, 0, 0]
    array = ballast.open(path).load()["x"].numpy()
    array[0] = 1
    assert ballast.open(path, io="read")["x"].tolist() == [0, 0, 0, 0]
    array = ballast.open(path)["x"].copy().numpy()
    array[0] = 1


def test_casts(tmp_path):
    values = np.array([0.1, 1.0, 65520.0, -2.5], np.float32)
    ballast.save(tmp_path / "x.safetensors", {"x": values})
    t = ballast.open(tmp_path / "x.safetensors")["x"]
    with np.errstate(over="ignore"):
        assert np.array_equal(t.to("F16").numpy(), values.astype(np.float16))
    assert np.array_equal(t.to("float64").numpy(), values.astype(np.float64))
    assert t.to("BF16").bits().numpy().tolist() == [0x3DCD, 0x3F80, 0x4780, 0xC020]
    assert t.to("f32").dtype == "F32"
    with pytest.raises(ValueError, match="there is no dtype 'F31'"):
        t.to("F31")
    with pytest.raises(TypeError, match="a dtype is wanted, not None"):  # NumPy's float64
        t.to(None)
    for expansion in (-1, float("nan")):
        with pytest.raises(ValueError, match="expansion is .*: it is 0 or more"):
            ballast.open(tmp_path / "x.safetensors", expansion=expansion)


def test_steps_move_names_and_not_data(tmp_path):
    ballast.save(tmp_path / "x.safetensors", {"net.a.weight": np.ones(2, np.float32), "net.b.weight": np.ones(2, np.float32), "net.b.n": np.ones(1, np.int64)})
    f = ballast.open(tmp_path / "x.safetensors")
    assert sorted(f.rename([(r"^net\.", ""), ("weight", "w")])) == ["a.w", "b.n", "b.w"]
    assert sorted(f.rename({r"net\.(.)\.": "$1/"})) == ["a/weight", "b/n", "b/weight"]
    assert sorted(f.filter(include=r"\.b\.", exclude=["n$"])) == ["net.b.weight"]
    assert {name: t.dtype for name, t in f.cast("f16", exclude="a").items()} == {"net.a.weight": "F32", "net.b.weight": "F16", "net.b.n": "I64"}
    with pytest.raises(SafetensorError) as caught:
        f.rename([(".*", "x")])
    assert caught.value.code == "duplicate-key"
    with pytest.raises(SafetensorError) as caught:
        f.filter("(")
    assert caught.value.code == "invalid-argument"


def test_npz_and_npy(tmp_path):
    a, b = np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(3, 2))
    np.savez_compressed(tmp_path / "x.npz", a=a, b=b)
    f = ballast.open(tmp_path / "x.npz")
    assert f.format == "npz" and np.array_equal(f["a"], a) and np.array_equal(f["b"].numpy(), b)
    np.save(tmp_path / "y.npy", b)
    (name,) = ballast.open(tmp_path / "y.npy")
    assert np.array_equal(ballast.open(tmp_path / "y.npy")[name], b)


@pytest.mark.parametrize("extension", ["safetensors", "pt", "npz", "bpk", "mpk", "record"])
def test_every_format_gives_back_what_it_was_given(extension, tmp_path):
    tensors = {"layer.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "layer.bias": np.array([1, 2], np.int64)}
    ballast.save(tmp_path / f"x.{extension}", tensors)
    f = ballast.open(tmp_path / f"x.{extension}")
    assert {name: t.tolist() for name, t in f.items()} == {name: array.tolist() for name, array in tensors.items()}


def test_shards(tmp_path):
    tensors = {f"w{i}": np.full(1000, i, np.float32) for i in range(5)}
    ballast.save(tmp_path / "model.safetensors", tensors, shard_size="8KB")
    assert len(list(tmp_path.glob("*.safetensors"))) == 3
    for path in (tmp_path, tmp_path / "model.safetensors.index.json"):
        f = ballast.open(path)
        assert f.format == "sharded" and {name: float(t[0].item()) for name, t in f.items()} == {f"w{i}": i for i in range(5)}


REFUSED = {"legacy_trailing_bytes.pth": "trailing-data", "legacy_trailing_pickle.pth": "trailing-data", "zip_storage_longer_than_declared.pt": "size-mismatch"}


def test_every_pytorch_file_of_the_fixtures_opens_without_pytorch():
    for path in FILES:
        if path.name in REFUSED:
            with pytest.raises(SafetensorError) as caught:
                ballast.open(path)
            assert caught.value.code == REFUSED[path.name]
            continue
        f = ballast.open(path)
        for tensor in f.values():
            if tensor.has_data:
                tensor.tobytes()
        if f.has_values:
            f.value()


def test_onnx_models_are_their_initializers():
    expected = json.loads((SOURCE / "tests/fixtures/onnx/expect.json").read_text())
    assert expected
    for path in sorted((SOURCE / "tests/fixtures/onnx/files").glob("*.onnx")):
        f = ballast.open(path)
        assert f.format == "onnx" and len(f) > 0
        for tensor in f.values():
            tensor.tobytes()


def test_values_of_a_training_checkpoint(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.125)
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    shared = [1, 2]
    torch.save(
        {"epoch": 7, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "note": ("text", None, 2.5, True, 1 + 2j, b"raw"), "s": {1, 2}, "x": shared, "y": shared, "big": 1 << 100},
        tmp_path / "x.pt",
    )
    f = ballast.open(tmp_path / "x.pt")
    assert f.value("epoch") == 7 and f.value("optimizer.param_groups.0.lr") == 0.125 and f.value("big") == 1 << 100
    assert f.value("note") == ("text", None, 2.5, True, 1 + 2j, b"raw") and f.value("s") == {1, 2}
    everything = f.value()
    assert everything["x"] is everything["y"] and set(everything) == {"epoch", "model", "optimizer", "note", "s", "x", "y", "big"}
    moment = f.value("optimizer.state.0.exp_avg")
    assert np.array_equal(moment.numpy(), optimizer.state_dict()["state"][0]["exp_avg"].numpy())
    assert np.array_equal(everything["model"]["weight"].numpy(), model.weight.detach().numpy())
    assert sorted(f.root("model")) == sorted(f.root()) == ["bias", "weight"]
    with pytest.raises(SafetensorError) as caught:
        f.value("optimizer.nothing")
    assert caught.value.code == "not-found"


def test_objects_of_foreign_classes_are_inert(tmp_path):
    torch = pytest.importorskip("torch")
    import pathlib

    torch.save({"m": torch.nn.ReLU(), "p": pathlib.PurePosixPath("/a/b"), "c": collections.Counter("aab")}, tmp_path / "x.pt")
    f = ballast.open(tmp_path / "x.pt")
    m = f.value("m")
    assert isinstance(m, ballast.Object) and m.type == "torch.nn.modules.activation.ReLU" and not m.is_class and "ReLU" in repr(m)


def test_cycles_and_deep_nests_become_python_objects(tmp_path):
    torch = pytest.importorskip("torch")
    loop = [1]
    loop.append((loop, {"back": loop}))
    deep = ()
    for _ in range(500):
        deep = (deep,)
    torch.save({"loop": loop, "deep": deep, "keys": {(1, ("a", None)): 2, 3.5: "x"}}, tmp_path / "x.pt")
    everything = ballast.open(tmp_path / "x.pt").value()
    again = everything["loop"]
    assert again[0] == 1 and again[1][0] is again and again[1][1]["back"] is again
    assert everything["deep"] == deep and everything["keys"] == {(1, ("a", None)): 2, 3.5: "x"}


def test_code_in_a_file_is_refused_by_name(tmp_path):
    class Evil:
        def __reduce__(self):
            return (eval, ("1",))

    import pickle

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x/data.pkl", pickle.dumps({"a": Evil()}, protocol=2))
        archive.writestr("x/version", "3\n")
    (tmp_path / "x.pt").write_bytes(buffer.getvalue())
    with pytest.raises(SafetensorError) as caught:
        ballast.open(tmp_path / "x.pt")
    assert caught.value.code == "forbidden-global" and "eval" in str(caught.value)
    assert ballast.open(tmp_path / "x.pt", inert=True).value("a").type.endswith("eval")
    assert not ballast.scan(tmp_path / "x.pt").clean


def test_what_is_not_a_file_of_weights(tmp_path):
    (tmp_path / "x.pt").write_text("<html>")
    with pytest.raises(SafetensorError) as caught:
        ballast.open(tmp_path / "x.pt")
    assert caught.value.code == "unknown-format" and caught.value.where == str(tmp_path / "x.pt")
    with pytest.raises(FileNotFoundError):
        ballast.open(tmp_path / "nothing.pt")
    with pytest.raises(TypeError):
        ballast.open(3.5)


def test_json_values(tmp_path):
    (tmp_path / "c.json").write_text('{"a": {"b": [1, 2.5, null, "x"]}}')
    assert ballast.open_value(tmp_path / "c.json", "a.b") == [1, 2.5, None, "x"]


def called(function, *arguments):
    """A pickle's opcodes for function(*arguments)."""
    module, name = function.rsplit(".", 1)
    return f"c{module}\n{name}\n(".encode() + b"".join(arguments) + b"tR"


def text(value):
    encoded = value.encode("utf-8")
    return b"X" + len(encoded).to_bytes(4, "little") + encoded


PATHS = [called(f"pathlib.{name}", text("a")) for name in ("Path", "PosixPath", "PurePath", "PurePosixPath")]
DTYPES = [called("numpy.dtype", text(name), b"\x89", b"\x88") for name in ("f4", "<f4", "=f4", ">f4")]
BYTES = [b"C\x01a"] + [called("numpy.core.multiarray.scalar", called("numpy.dtype", text(f"S{n}"), b"\x89", b"\x88"), b"C" + bytes([n]) + b"a".ljust(n, b"\0")) for n in (1, 2, 5)]


@pytest.mark.parametrize("keys", [PATHS, DTYPES, BYTES], ids=["paths", "dtypes", "bytes"])
def test_keys_that_python_takes_for_one_are_one_or_refused(keys, tmp_path):
    for first, second in itertools.product(keys, keys):
        data = b"\x80\x03}(" + first + b"K\x01" + second + b"K\x02u."
        (tmp_path / "x.pkl").write_bytes(data)
        try:
            assert len(ballast.open_value(tmp_path / "x.pkl")) == len(pickle.loads(data))
        except SafetensorError as refusal:
            assert refusal.code == "type-mismatch"


@pytest.mark.parametrize("packed", ["\x07\x64\x01\x02", "é\x01\x02", "\xe9\x64\x01\x02"])
def test_dates_of_text_are_what_python_makes_of_them_or_refused(packed, tmp_path):
    data = b"\x80\x02" + called("datetime.date", text(packed)) + b"."
    (tmp_path / "x.pkl").write_bytes(data)
    try:
        wanted = str(pickle.loads(data, encoding="latin1"))
    except TypeError:
        wanted = None
    found = ballast.open_value(tmp_path / "x.pkl")
    is_clean = ballast.scan(tmp_path / "x.pkl").verdict == "clean"
    assert found == wanted if is_clean else not isinstance(found, str)
