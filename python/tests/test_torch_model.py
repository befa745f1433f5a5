# SPDX-License-Identifier: Apache-2.0
"""save_model and load_model: tensors that share memory."""
import copy

import pytest

torch = pytest.importorskip("torch")

from ballast import safe_open  # noqa: E402
from ballast.torch import (  # noqa: E402
    _end_ptr,
    _find_shared_tensors,
    _is_complete,
    _remove_duplicate_names,
    load_model,
    save,
    save_file,
    save_model,
)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(10, 10)
        self.b = self.a


class Apart(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(10, 10)
        self.b = torch.nn.Linear(10, 10)


class Transposed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)
        self.a.weight = torch.nn.Parameter(torch.zeros(4, 4).t())


def equal(a, b):
    a, b = a.state_dict(), b.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_complete_tensors():
    whole = torch.zeros(3, 3)
    assert _is_complete(whole) and not _is_complete(whole[:1]) and not _is_complete(whole[::2])
    assert _is_complete(torch.zeros((2, 2), device="meta"))


def test_shared_tensors_are_found():
    whole = torch.zeros(3, 3)
    assert _find_shared_tensors({"A": whole, "B": whole[:1]}) == [{"A", "B"}]
    assert _find_shared_tensors({"B": whole[:1]}) == [{"B"}]
    assert _find_shared_tensors({"C": torch.zeros(2, device="meta")}) == []
    assert _find_shared_tensors({"E": torch.zeros(0)}) == []


def test_disjoint_views_share_nothing():
    whole = torch.zeros(4)
    assert _find_shared_tensors({"B": whole[:2], "C": whole[2:]}) == [{"B"}, {"C"}]
    assert _find_shared_tensors({"B": whole[:2], "C": whole[1:]}) == [{"B", "C"}]
    assert _find_shared_tensors({"B": whole[:2], "C": whole[2:], "D": whole[:1]}) == [{"B", "D"}, {"C"}]


def test_a_long_range_is_not_forgotten_behind_a_short_one():
    whole = torch.zeros(10)
    assert _find_shared_tensors({"all": whole, "head": whole[:1], "tail": whole[5:]}) == [{"all", "head", "tail"}]


def test_the_end_of_a_tensor():
    for dtype, size in ((torch.float32, 4), (torch.float16, 2)):
        whole = torch.zeros(16, dtype=dtype)
        assert _end_ptr(whole) - whole.data_ptr() == 16 * size
        assert _end_ptr(whole[::4]) - whole.data_ptr() == 12 * size + size
    assert _end_ptr(torch.zeros(4, 4).t()) - 0 > 0


def test_names_to_remove():
    whole = torch.zeros(3, 3)
    assert _remove_duplicate_names({"A": whole, "B": whole[:1]}) == {"A": ["B"]}
    assert _remove_duplicate_names({"A": whole, "B": whole[:1], "C": whole}) == {"A": ["B", "C"]}
    assert _remove_duplicate_names({"A": whole, "C": whole}, preferred_names=["C"]) == {"C": ["A"]}
    assert _remove_duplicate_names({"A": whole, "C": whole}, discard_names=["A"]) == {"C": ["A"]}
    with pytest.raises(RuntimeError, match="None is covering the entire storage.Refusing to save/load the model"):
        _remove_duplicate_names({"B": whole[:1]})


def test_tied_models_are_saved_once(tmp_path):
    model, other = Tied(), Tied()
    with pytest.raises(RuntimeError):
        save_file(model.state_dict(), tmp_path / "x")
    metadata = {"b.bias": "mine"}
    save_model(model, str(tmp_path / "x"), metadata=metadata)
    assert metadata == {"b.bias": "mine"}
    with safe_open(tmp_path / "x", "pt") as f:
        assert f.keys() == ["a.bias", "a.weight"]
        assert f.metadata() == {"b.bias": "mine", "b.weight": "a.weight"}
    assert load_model(other, tmp_path / "x") == (set(), [])
    assert equal(model, other)


def test_metadata_is_written_as_it_is_given(tmp_path):
    tensors, metadata = {"wte.weight": torch.ones(2)}, {"lm_head.weight": "wte.weight", "format": "pt", "ballast.layout": "burn", "ballast.ties": "{}"}
    for durable in (True, False):
        save_file(tensors, tmp_path / "x", metadata, durable=durable)
        assert (tmp_path / "x").read_bytes() == save(tensors, metadata)
        with safe_open(tmp_path / "x", "pt") as f:
            assert f.metadata() == metadata


def test_the_file_may_have_the_other_names(tmp_path):
    model, other = Tied(), Tied()
    state = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("b.")}
    save_file(state, tmp_path / "x")
    load_model(other, str(tmp_path / "x"))
    assert equal(model, other)


def test_non_contiguous_models(tmp_path):
    model, other = Transposed(), Transposed()
    with pytest.raises(ValueError, match=r"use save_model\(..., force_contiguous=True\)"):
        save_model(model, tmp_path / "x", force_contiguous=False)
    save_model(model, tmp_path / "x")
    load_model(other, tmp_path / "x")
    assert equal(model, other)


def test_copies_share_nothing(tmp_path):
    model = Apart()
    model.b = copy.deepcopy(model.a)
    save_model(model, tmp_path / "x")
    other = Apart()
    load_model(other, tmp_path / "x")
    assert equal(model, other)


def test_missing_and_unexpected_names(tmp_path):
    save_model(Tied(), tmp_path / "tied")
    with pytest.raises(RuntimeError) as caught:
        load_model(Apart(), tmp_path / "tied")
    assert str(caught.value) == 'Error(s) in loading state_dict for Apart:\n    Missing key(s) in state_dict: "b.bias", "b.weight"'
    assert load_model(Apart(), tmp_path / "tied", strict=False) == ({"b.bias", "b.weight"}, [])

    save_model(Apart(), tmp_path / "apart")
    with pytest.raises(RuntimeError) as caught:
        load_model(Tied(), tmp_path / "apart")
    assert 'Unexpected key(s) in state_dict: "b.bias", "b.weight"' in str(caught.value)
    missing, unexpected = load_model(Tied(), tmp_path / "apart", strict=False)
    assert missing == set() and sorted(unexpected) == ["b.bias", "b.weight"]


def test_models_load_pytorchs_own_files(tmp_path):
    model, other = Apart(), Apart()
    torch.save(model.state_dict(), tmp_path / "x.pt")
    assert load_model(other, tmp_path / "x.pt", backend="pread") == (set(), [])
    assert equal(model, other)
