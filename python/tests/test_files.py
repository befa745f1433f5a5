# SPDX-License-Identifier: Apache-2.0
"""save, convert, diff, verify, scan, hash."""
import json
import pathlib
import shutil
import threading

import numpy as np
import pytest

import ballast
from ballast import SafetensorError

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def pt(tmp_path):
    state = {f"net.layers.{i}.weight": np.random.default_rng(i).standard_normal((64, 64)).astype(np.float32) for i in range(4)}
    state["net.step"] = np.array(7, np.int64)
    ballast.save(tmp_path / "m.pt", state)
    return tmp_path / "m.pt"


def test_tensors_of_all_kinds_are_saved_together(tmp_path):
    ballast.save(tmp_path / "a.safetensors", {"n": np.arange(3), "t": np.asfortranarray(np.eye(2)), "l": [1.5, 2.5], "s": 3})
    source = ballast.open(tmp_path / "a.safetensors")
    mixed = {"ours": source["n"], "view": source["t"].T[1:], "numpy": np.ones(2)}
    try:
        import torch

        mixed["torch"] = torch.arange(4.0).reshape(2, 2).t()
        mixed["parameter"] = torch.nn.Parameter(torch.ones(1))
    except ImportError:
        pass
    ballast.save(tmp_path / "b.safetensors", mixed)
    saved = ballast.open(tmp_path / "b.safetensors")
    assert {name: saved[name].tolist() for name in mixed} == {name: value.tolist() for name, value in mixed.items()}


def test_overwriting_is_asked_for(tmp_path, pt):
    ballast.save(tmp_path / "x.safetensors", {"a": np.ones(1)})
    with pytest.raises(FileExistsError) as caught:
        ballast.save(tmp_path / "x.safetensors", {"a": np.zeros(1)})
    assert isinstance(caught.value, SafetensorError) and caught.value.code == "already-exists"
    with pytest.raises(FileExistsError):
        ballast.convert(pt, tmp_path / "x.safetensors")
    assert ballast.open(tmp_path / "x.safetensors")["a"].item() == 1


def test_a_folder_that_is_not_there_or_holds_no_model_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="make it first"):
        ballast.save(tmp_path / "absent/x.safetensors", {"a": np.ones(1)})
    with pytest.raises(FileNotFoundError, match="without an index"):
        ballast.open(tmp_path)


def test_formats_follow_the_name_or_the_argument(tmp_path):
    ballast.save(tmp_path / "x.bin", {"a": np.ones(1)}, format="npz")
    assert ballast.open(tmp_path / "x.bin").format == "npz"
    with pytest.raises(SafetensorError) as caught:
        ballast.save(tmp_path / "x.unknown", {"a": np.ones(1)})
    assert caught.value.code == "invalid-argument"
    with pytest.raises(SafetensorError) as caught:
        ballast.save(tmp_path / "x.safetensors", {"a": np.ones(1, np.complex128)})
    assert caught.value.code == "not-representable"


def test_convert_with_every_step(tmp_path, pt):
    done = ballast.convert(
        pt, tmp_path / "x.safetensors", rename=[(r"^net\.", ""), (r"layers\.", "block.")], include=["block"], exclude=r"\.0\.", dtype="float16"
    )
    f = ballast.open(tmp_path / "x.safetensors")
    assert sorted(f) == ["block.1.weight", "block.2.weight", "block.3.weight"] == sorted(done.tensors)
    assert all(t.dtype == "F16" for t in f.values()) and done.cast == 3 and done.rounded > 0 and done.overflowed == 0
    source = ballast.open(pt)["net.layers.2.weight"].numpy()
    assert np.array_equal(f["block.2.weight"].numpy(), source.astype(np.float16))
    done = ballast.convert(pt, tmp_path / "y.safetensors", reindex=r"layers\.", rename={r"layers\.0\.": "first.", "nothing": ""})
    assert sorted(ballast.open(tmp_path / "y.safetensors")) == ["net.first.weight", "net.layers.0.weight", "net.layers.1.weight", "net.layers.2.weight", "net.step"]
    assert done.unmatched == ["nothing"] and "net.layers.3.weight" in done.origins


def test_convert_in_shards_with_a_receipt(tmp_path, pt):
    done = ballast.convert(pt, tmp_path / "model.safetensors", shard_size="20KB", receipt=tmp_path / "r.json")
    assert len(done.files) == 4 and json.loads((tmp_path / "r.json").read_text())["schema"] == 1
    assert ballast.diff(pt, tmp_path / "model.safetensors.index.json").same
    assert ballast.hash(pt).root == ballast.hash(tmp_path / "model.safetensors.index.json").root


def test_convert_says_more_in_the_metadata(tmp_path, pt):
    for target in ("x.safetensors", "x.record"):
        ballast.convert(pt, tmp_path / target, meta={"license": "mit", "note": "a=b"})
        metadata = ballast.open(tmp_path / target).metadata
        assert metadata["license"] == "mit" and metadata["note"] == "a=b"
    assert ballast.open(tmp_path / "x.safetensors").metadata["format"] == "pt"
    for target, meta, kind in [("y.npz", {"a": "b"}, SafetensorError), ("y.safetensors", {"": "b"}, SafetensorError), ("y.safetensors", {"ballast.ties": "{}"}, SafetensorError), ("y.safetensors", {"a": 1}, TypeError), ("y.safetensors", "ab", (TypeError, ValueError))]:
        with pytest.raises(kind):
            ballast.convert(pt, tmp_path / target, meta=meta)
        assert not (tmp_path / target).exists()


def test_convert_with_rules(tmp_path, pt):
    (tmp_path / "rules.json").write_text('{"rules": [{"match": "weight$", "transpose": [0, 1]}]}')
    ballast.convert(pt, tmp_path / "x.npz", rules=tmp_path / "rules.json")
    name = "net.layers.1.weight"
    assert np.array_equal(ballast.open(tmp_path / "x.npz")[name].numpy(), ballast.open(pt)[name].numpy().T)


def test_wrong_options_are_refused(tmp_path, pt):
    for options, kind in [({"dtype": "f31"}, SafetensorError), ({"rename": [("(", "")]}, SafetensorError), ({"quantize": "int3"}, ValueError), ({"shard_size": "3 apples"}, ValueError), ({"rename": ["ab", "abc"]}, ValueError)]:
        with pytest.raises(kind):
            ballast.convert(pt, tmp_path / "x.safetensors", **options)
    assert not (tmp_path / "x.safetensors").exists()


class Stop(Exception):
    pass


@pytest.mark.parametrize("job", ["convert", "save", "diff", "verify", "hash", "stats"])
def test_progress_is_told_and_may_stop_the_work(tmp_path, pt, job):
    seen = []
    jobs = {
        "convert": lambda p: ballast.convert(pt, tmp_path / "x.safetensors", overwrite=True, progress=p),
        "save": lambda p: ballast.save(tmp_path / "x.safetensors", ballast.open(pt), overwrite=True, progress=p),
        "diff": lambda p: ballast.diff(pt, pt, progress=p),
        "verify": lambda p: ballast.verify(pt, progress=p),
        "hash": lambda p: ballast.hash(pt, progress=p),
        "stats": lambda p: ballast.stats(pt, progress=p),
    }
    jobs[job](lambda done, total: seen.append((done, total)))
    assert seen and all(0 <= done <= total for done, total in seen) and max(seen)[0] == seen[0][1]
    files = sorted(tmp_path.iterdir())
    contents = [file.read_bytes() for file in files]

    def stop(done, total):
        raise Stop(f"at {done}")

    with pytest.raises(Stop):
        jobs[job](stop)
    assert sorted(tmp_path.iterdir()) == files and [file.read_bytes() for file in files] == contents
    with pytest.raises(TypeError):
        jobs[job](lambda: None)


def test_a_stopped_conversion_leaves_nothing(tmp_path, pt):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ballast.convert(pt, tmp_path / "x.safetensors", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt"]


def test_the_gil_is_free_while_files_are_read(tmp_path):
    ballast.save(tmp_path / "big.safetensors", {"x": np.ones(1 << 22)})  # 32 MiB
    ticks, done = [0], threading.Event()

    def count():
        while not done.is_set():
            ticks[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    for _ in range(3):
        ballast.hash(tmp_path / "big.safetensors")
    done.set()
    counter.join()
    assert ticks[0] > 1000


def test_differences(tmp_path):
    a = {"same": np.arange(4.0), "near": np.ones(3, np.float32), "far": np.zeros(2), "cast": np.ones(2, np.float32), "shape": np.ones(3), "old": np.arange(9), "gone": np.ones(1)}
    b = {"same": np.arange(4.0), "near": np.ones(3, np.float32) + np.float32(1e-6), "far": np.full(2, 5.0), "cast": np.ones(2, np.float16), "shape": np.ones((3, 1)), "new": np.arange(9), "here": np.zeros(1)}
    report = ballast.diff(a, b)
    found = {d.name: d.change for d in report.tensors}
    assert found == {"same": "equal", "near": "values", "far": "values", "cast": "dtype", "shape": "shape", "old": "renamed", "gone": "only-a", "here": "only-b"}
    assert not report.same and len(report.changes) == 7
    far = next(d for d in report.tensors if d.name == "far")
    assert far.distance.max_abs == 5.0 and far.distance.differing == 2 and far.dtype_a == "F64" and far.shape_b == (2,)
    assert next(d for d in report.tensors if d.name == "old").other == "new"
    assert ballast.diff({"x": a["near"]}, {"x": b["near"]}, tolerance=1e-5).same
    assert ballast.diff(a, a).same


def test_verdicts(tmp_path):
    ballast.save(tmp_path / "x.safetensors", {"good": np.arange(1, 4.0), "bad": np.array([1.0, np.nan, np.inf, -np.inf]), "dead": np.zeros(5), "one": np.zeros(1), "large": np.full(2, 1e6)})
    verdict = ballast.verify(tmp_path / "x.safetensors", max_abs=1e4)
    assert not verdict.clean
    assert sorted((f.name, f.kind, f.count) for f in verdict.findings) == [("bad", "inf", 2), ("bad", "nan", 1), ("dead", "zero", 5), ("large", "large", 1)]
    assert ballast.verify(tmp_path / "x.safetensors", exclude=["bad", "dead"]).clean
    assert ballast.verify(tmp_path / "x.safetensors", include="dead", allow_zeros=True).clean
    numbers = ballast.stats(tmp_path / "x.safetensors")
    assert numbers["good"]["mean"] == 2.0 and numbers["good"]["std"] == pytest.approx(np.std([1, 2, 3])) and numbers["bad"]["nan"] == 1


def test_quantiles_and_histograms_are_numpys():
    values = np.random.default_rng(3).normal(size=5001).astype(np.float16)
    found = ballast.stats({"w": values}, quantiles=[0, 0.25, 0.5, 1], histogram=True)["w"]
    exact = values.astype(float)
    assert found["quantiles"] == {q: np.quantile(exact, q, method="inverted_cdf") for q in (0, 0.25, 0.5, 1)}
    edges, counts = found["histogram"]["edges"], found["histogram"]["counts"]
    assert len(counts) == 256 and counts == np.histogram(exact, edges)[0].tolist()
    assert len(ballast.stats({"w": values}, quantiles=True)["w"]["quantiles"]) == 9
    assert "quantiles" not in ballast.stats({"w": values})["w"]
    for wrong in ([1.5], [float("nan")], ["x"]):
        with pytest.raises((ballast.Error, TypeError)):
            ballast.stats({"w": values}, quantiles=wrong)


def test_checksums_are_compared(tmp_path):
    ballast.save(tmp_path / "x.pt", {"a": np.arange(100.0)})
    assert ballast.verify(tmp_path / "x.pt").clean
    data = bytearray((tmp_path / "x.pt").read_bytes())
    place = data.index(np.float64(50.0).tobytes() + np.float64(51.0).tobytes())
    data[place] ^= 1
    (tmp_path / "x.pt").write_bytes(data)
    assert [f.kind for f in ballast.verify(tmp_path / "x.pt").findings] == ["checksum"]
    ballast.save(tmp_path / "x.record", {"a": np.arange(100.0)})
    data = bytearray((tmp_path / "x.record").read_bytes())
    data[-1] ^= 1
    (tmp_path / "x.record").write_bytes(data)
    assert [(f.name, f.kind) for f in ballast.verify(tmp_path / "x.record").findings] == [("a", "checksum")]
    shutil.copytree(EXAMPLES.parent / "tests/fixtures/onnx/files", tmp_path / "onnx")  # SHA-1 of external data
    weights = tmp_path / "onnx/data/w.safetensors"
    assert ballast.verify(tmp_path / "onnx/shared.onnx").clean
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert [f.kind for f in ballast.verify(tmp_path / "onnx/shared.onnx").findings] == ["checksum"]


def test_training_checkpoints_are_compared_and_hashed_by_their_state_dict(tmp_path):
    source = EXAMPLES / "data/net.pt"  # epoch, loss and "state_dict"
    ballast.convert(source, tmp_path / "x.safetensors")
    assert ballast.diff(source, tmp_path / "x.safetensors").same
    assert ballast.hash(source).root == ballast.hash(tmp_path / "x.safetensors").root
    assert "4.bias" in ballast.hash(source).tensors
    assert not ballast.diff(source, tmp_path / "x.safetensors", root="", find_renamed=False).same
    assert "state_dict.4.bias" in ballast.hash(ballast.open(source)).tensors  # what is open is taken as it is
    assert [t.name for t in ballast.diff(source, source, include="bias", exclude=r"^[01]\.").tensors] == ["4.bias"]
    assert "state_dict.4.bias" in ballast.stats(source) and list(ballast.stats(source, root="state_dict", include="4.bias")) == ["4.bias"]


def test_quantized_weights_are_compared_as_what_they_stand_for(tmp_path):
    source = {"w": np.arange(-127, 128, dtype=np.float32).reshape(5, 51)}
    ballast.save(tmp_path / "x.safetensors", source)
    ballast.convert(tmp_path / "x.safetensors", tmp_path / "q.safetensors", quantize="int8")
    report = ballast.diff(tmp_path / "x.safetensors", tmp_path / "q.safetensors", tolerance=1)
    assert [t.name for t in report.tensors] == ["w"] and report.same


def test_dtypes_have_the_words_of_the_command_line_and_keep_dtype_adds_to_the_norms(tmp_path):
    source = tmp_path / "x.safetensors"
    ballast.save(source, {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32), "n.running_mean": np.ones(2, np.float32), "n.running_var": np.ones(2, np.float32)})
    for word, code in (("half", "F16"), ("full", "F32"), ("double", "F64"), ("float16", "F16"), ("bf16", "BF16")):
        ballast.convert(source, tmp_path / "y.safetensors", dtype=word, overwrite=True)
        assert ballast.open(tmp_path / "y.safetensors")["a"].dtype == code
    ballast.convert(source, tmp_path / "y.safetensors", dtype="half", keep_dtype="^b$", overwrite=True)
    assert [t.dtype for t in map(ballast.open(tmp_path / "y.safetensors").__getitem__, ("a", "b", "n.running_mean"))] == ["F16", "F32", "F32"]


def test_a_release_is_compared_with_its_source_by_the_steps_that_made_it(tmp_path):
    source = tmp_path / "x.safetensors"
    ballast.save(source, {"net.a": np.ones(2, np.float32), "net.b": np.full(2, 1 / 3, np.float32)})
    steps = {"rename": {r"^net\.": ""}, "dtype": "bf16", "keep_dtype": "^a$", "include": "[ab]"}
    ballast.convert(source, tmp_path / "y.safetensors", **steps)
    assert ballast.diff(source, tmp_path / "y.safetensors", find_renamed=False, **steps).same
    assert not ballast.diff(source, tmp_path / "y.safetensors", find_renamed=False, **{**steps, "dtype": "f16"}).same
    assert ballast.hash(source, **steps).root == ballast.hash(tmp_path / "y.safetensors").root
    assert ballast.stats(source, **steps).keys() == {"a", "b"}
    assert ballast.verify(source, dtype="f16", max_abs=0.5, **{k: v for k, v in steps.items() if k != "dtype"}).findings[0].name == "a"


def test_a_pattern_of_any_step_that_matches_nothing_is_said(tmp_path):
    source = tmp_path / "x.safetensors"
    ballast.save(source, {"layers.3.a": np.ones(2, np.float32)})
    for steps in ({"rename": {"zzz": ""}}, {"exclude": "zzz"}, {"include": ["a", "zzz"]}, {"reindex": "zzz"}, {"dtype": "f16", "keep_dtype": "zzz"}, {"reindex": "layers", "keep_positions": "zzz"}):
        for work in (ballast.hash, ballast.stats, lambda path, **more: ballast.diff(path, path, **more)):
            with pytest.warns(UserWarning, match="'zzz' matched nothing"):
                work(source, **steps)
        assert "zzz" in str(ballast.verify(source, **steps).notes)
        assert ballast.convert(source, tmp_path / "y.safetensors", overwrite=True, **steps).unmatched == ["zzz"]


def test_a_release_is_compared_by_the_root_that_made_it(tmp_path, recwarn):
    source, out = tmp_path / "two.safetensors", tmp_path / "ema.safetensors"
    ballast.save(source, {"ema.w": np.ones(2), "ema.b": np.ones(1), "model.w": np.zeros(2)})
    ballast.convert(source, out, root="ema", exclude="b")
    for exclude in ("b", ["b"]):
        assert ballast.diff(source, out, root="ema", exclude=exclude).same
    assert not ballast.diff(source, out, root="model").same
    assert not recwarn.list


def test_receipts_are_compared(tmp_path, pt):
    ballast.convert(pt, tmp_path / "x.safetensors", receipt=tmp_path / "r.json")
    assert ballast.verify(tmp_path / "x.safetensors", receipt=tmp_path / "r.json").clean
    ballast.save(tmp_path / "x.safetensors", {"a": np.ones(2)}, overwrite=True)
    assert "receipt" in {f.kind for f in ballast.verify(tmp_path / "x.safetensors", receipt=tmp_path / "r.json").findings}


def test_receipts_are_compared_by_tensors_alone_when_asked(tmp_path, pt):
    ballast.convert(pt, tmp_path / "x.safetensors", receipt=tmp_path / "r.json")
    ballast.convert(tmp_path / "x.safetensors", tmp_path / "y.safetensors", meta={"license": "mit"})
    assert not ballast.verify(tmp_path / "y.safetensors", receipt=tmp_path / "r.json").clean
    assert ballast.verify(tmp_path / "y.safetensors", receipt=tmp_path / "r.json", tensors_only=True).clean
    ballast.convert(pt, tmp_path / "z.safetensors", dtype="f16")
    assert not ballast.verify(tmp_path / "z.safetensors", receipt=tmp_path / "r.json", tensors_only=True).clean


def test_the_first_nan_has_a_place(tmp_path):
    a = {"x": np.array([[1, 2], [3, np.nan]], np.float32)}
    b = {"x": np.array([[1, np.nan], [4, np.nan]], np.float32)}
    distance = ballast.diff(a, b).tensors[0].distance
    assert (distance.nan_a, distance.nan_b) == (3, 1)
    assert distance.l2_diff == 1 and distance.l2_a == np.hypot(1, 3)
    ballast.save(tmp_path / "b.safetensors", b)
    assert ballast.verify(tmp_path / "b.safetensors").findings[0].first == 1



def test_scans(pt):
    report = ballast.scan(pt)
    assert report.clean and report.format == "torch-zip" and any("_rebuild_tensor_v2" in g["name"] for g in report.globals)


def test_threads_are_counted():
    before = ballast.thread_count()
    ballast.set_thread_count(1)
    assert ballast.thread_count() == 1
    ballast.set_thread_count(before)
    with pytest.raises(SafetensorError):
        ballast.set_thread_count(0)


def test_other_metadata_leaves_what_is_said_of_the_tensors(tmp_path):
    weights = np.arange(-127, 128, dtype=np.float32).reshape(5, 51)
    ballast.save(tmp_path / "x.safetensors", {"w": weights})
    ballast.convert(tmp_path / "x.safetensors", tmp_path / "q.safetensors", quantize="int8")
    quantized = ballast.open(tmp_path / "q.safetensors")
    ballast.save(tmp_path / "m.safetensors", quantized, {"license": "MIT"})
    again = ballast.open(tmp_path / "m.safetensors")
    assert again.metadata["license"] == "MIT" and "ballast.quantized" in again.metadata
    assert np.abs(again.dequantize()["w"].numpy() - weights).max() < 1
    with pytest.raises(SafetensorError, match="Ballast's own"):
        ballast.save(tmp_path / "n.safetensors", quantized, {"ballast.layout": "native"})
    with pytest.raises(SafetensorError, match="dequantize"):
        ballast.save(tmp_path / "n.pt", quantized)
    ballast.save(tmp_path / "n.pt", quantized.dequantize())
    assert ballast.open(tmp_path / "n.pt")["w"].dtype == "F32"
    with pytest.raises(SafetensorError):  # scales that are not there
        ballast.save(tmp_path / "n.safetensors", {"w": quantized["w"]}, quantized.metadata)


def test_burns_files_get_burns_layout_and_it_is_noted(tmp_path):
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    ballast.save(tmp_path / "x.safetensors", {"fc.weight": weight, "fc.bias": np.zeros(2, np.float32), "shared.weight": weight})
    with pytest.raises(SafetensorError, match="shared.weight"):
        ballast.convert(tmp_path / "x.safetensors", tmp_path / "x.bpk")
    done = ballast.convert(tmp_path / "x.safetensors", tmp_path / "x.bpk", layers={"^shared$": "embedding", "zzz": "none"}, burn="0.20")
    assert any("is burn: 1 embedding, 1 linear" in note for note in done.notes) and done.unmatched == ["zzz"]
    made = ballast.open(tmp_path / "x.bpk")
    assert (made["fc.weight"].numpy() == weight.T).all() and (made["shared.weight"].numpy() == weight).all()
    ballast.convert(tmp_path / "x.bpk", tmp_path / "y.npz", layout="pytorch", layers={"shared": "embedding"})
    assert (ballast.open(tmp_path / "y.npz")["fc.weight"].numpy() == weight).all()
    ballast.convert(tmp_path / "x.safetensors", tmp_path / "z.bpk", like=tmp_path / "x.bpk", adapter="pytorch")
    assert (ballast.open(tmp_path / "z.bpk")["fc.weight"].numpy() == weight.T).all()
    with pytest.raises(SafetensorError):
        ballast.convert(tmp_path / "x.safetensors", tmp_path / "w.bpk", layout="burnt")


def test_ties_are_named_and_damage_is_not_saved(tmp_path):
    ballast.save(tmp_path / "t.safetensors", {"a.weight": np.ones(3, np.float32)}, {"ballast.ties": '{"b.weight": "a.weight"}'})
    assert ballast.open(tmp_path / "t.safetensors").ties() == {"b.weight": "a.weight"}
    ballast.save(tmp_path / "d.npz", {"w": np.full(3, 1.25, np.float32)})
    blob = bytearray((tmp_path / "d.npz").read_bytes())
    blob[blob.rindex(np.full(3, 1.25, np.float32).tobytes())] ^= 1
    (tmp_path / "d.npz").write_bytes(blob)
    with pytest.raises(SafetensorError, match="checksum"):
        ballast.save(tmp_path / "o.safetensors", ballast.open(tmp_path / "d.npz"))
    with pytest.raises(SafetensorError, match="checksum"):
        ballast.convert(tmp_path / "d.npz", tmp_path / "o.safetensors")
    ballast.convert(tmp_path / "d.npz", tmp_path / "o.safetensors", check=False)


@pytest.mark.parametrize("extension", [".safetensors", ".record", ".pt"])
def test_one_array_under_two_names_stays_one(extension, tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    given = {"a": array, "b": array, "c": array.T, "d": array[0], "e": array.copy()}
    ballast.save(tmp_path / ("a" + extension), given)
    found = {name: tensor.numpy() for name, tensor in ballast.open(tmp_path / ("a" + extension)).items()}
    for name, value in given.items():
        np.testing.assert_array_equal(found[name], value)
    assert found["a"].ctypes.data == found["b"].ctypes.data != found["e"].ctypes.data
