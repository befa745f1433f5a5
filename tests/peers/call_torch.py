# SPDX-License-Identifier: Apache-2.0
"""The calls that safetensors.torch alone has: models, and tensors that share memory."""
import collections
import pathlib

import torch
from torch import nn

from call_core import FILES, named


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)


class Tied(Plain):
    def __init__(self):
        super().__init__()
        self.c = self.a
        self.b.weight = nn.Parameter(torch.ones(2, 4))
        self.d = nn.Parameter(self.a.bias[:])


class Views(nn.Module):
    """Parts of one storage, none of which is all of it."""

    def __init__(self):
        super().__init__()
        whole = torch.arange(10.0)
        self.a, self.b = nn.Parameter(whole[:6]), nn.Parameter(whole[4:])


class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.arange(6.0).reshape(2, 3).t())


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("gone", torch.ones(2), persistent=False)
        self.register_buffer("kept", torch.ones(2, dtype=torch.bool))


MODELS = [Plain, Tied, Views, Turned, Buffers, nn.Identity]


def states():
    """name → state dict whose tensors share memory in some way."""
    whole, other = torch.arange(12.0), torch.ones(3)
    square = torch.arange(9.0).reshape(3, 3)
    yield "nothing", {}
    yield "apart", {"a": whole.clone(), "b": other}
    yield "same", {"a": whole, "b": whole, "c": other}
    yield "views of all", {"a": whole, "b": whole.view(3, 4), "c": whole.view(4, 3)}
    yield "halves", {"a": whole[:6], "b": whole[6:]}
    yield "halves and all", {"x": whole[:6], "a": whole[6:], "m": whole}
    yield "overlapping", {"a": whole[:8], "b": whole[4:]}
    yield "a part alone", {"a": whole[2:4]}
    yield "turned", {"a": square, "b": square.t()}
    yield "empty", {"a": torch.empty(0), "b": torch.empty(0), "c": whole[:0]}
    yield "meta", {"a": torch.empty(2, device="meta"), "b": torch.empty(2, device="meta"), "c": other}
    yield "names", {"b": whole, "a": whole, "c": whole, "z": other, "y": other}
    yield "sparse", {"a": torch.ones(2, 2).to_sparse()}
    yield "complex", {"a": torch.ones(2, dtype=torch.complex64).conj(), "b": torch.ones(2, dtype=torch.complex64)}
    yield "negated", {"a": torch.ones(2, dtype=torch.complex64).imag.neg()}
    yield "parameters", {"a": nn.Parameter(torch.ones(2)), "b": torch.ones(3, requires_grad=True)}
    yield "doubles", {"a": torch.ones(2, dtype=torch.complex128)}
    yield "quantized", {"a": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)}
    yield "stepped", {"a": whole[::2]}
    yield "turned alone", {"a": square.t().clone(memory_format=torch.preserve_format).t().t()}
    yield "expanded", {"a": torch.ones(1).expand(4)}
    yield "channels last", {"a": torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last)}


def sharing():
    for name, state in states():
        yield f"_find_shared_tensors {name}", lambda s, state=state: sorted(map(sorted, s.part._find_shared_tensors(state)))
        yield f"_remove_duplicate_names {name}", lambda s, state=state: dict(s.part._remove_duplicate_names(state))
        yield f"_remove_duplicate_names {name}, preferred", lambda s, state=state: dict(s.part._remove_duplicate_names(state, preferred_names=["b", "y", "nothing"]))
        yield f"_remove_duplicate_names {name}, discarded", lambda s, state=state: dict(s.part._remove_duplicate_names(state, discard_names=["a", "y"]))
        yield f"_remove_duplicate_names {name}, both", lambda s, state=state: dict(s.part._remove_duplicate_names(state, preferred_names=["a"], discard_names=["a", "b"]))
        yield f"_filter_shared_not_shared {name}", lambda s, state=state: sorted(map(sorted, s.part._filter_shared_not_shared([set(state)], state)))
        yield f"_evaluate_tensors_for_save {name}", lambda s, state=state: s.part._evaluate_tensors_for_save(state)
        yield f"_flatten_as_ptr {name}", lambda s, state=state: s.part._flatten_as_ptr(state, [])
        yield f"save {name}", lambda s, state=state: s.part.save(state)
        yield f"save_file {name}", lambda s, state=state: (s.part.save_file(state, s.path("state")), pathlib.Path(s.path("state")))[1]
        yield f"load(save) {name}", lambda s, state=state: s.part.load(s.part.save(state))
        for key, tensor in state.items():
            for function in ("_is_complete", "storage_size", "_end_ptr", "storage_ptr", "_to_ndarray"):
                yield f"{function} {name}.{key}", lambda s, function=function, tensor=tensor: told(getattr(s.part, function)(tensor))
    for function in ("_is_complete", "storage_size", "_end_ptr", "storage_ptr", "_find_shared_tensors", "_remove_duplicate_names", "_evaluate_tensors_for_save", "_to_ndarray", "_view2torch"):
        yield from named(function, [None, 1, "text", [], {}], lambda s, v, f=function: told(getattr(s.part, f)(v)))
    yield "_remove_duplicate_names(positional)", lambda s: s.part._remove_duplicate_names({}, ["a"])
    yield from named("save of a mapping", [collections.OrderedDict(a=torch.ones(2)), collections.UserDict(a=torch.ones(2)), collections.defaultdict(int, a=torch.ones(2))], lambda s, v: s.part.save(v))


def told(value):
    return value[0].view("uint8").reshape(-1) if isinstance(value, tuple) else value


def models():
    for kind in MODELS:
        name = kind.__name__
        for words in ({}, {"metadata": {"k": "v"}}, {"force_contiguous": False}, {"metadata": {"c.weight": "mine"}}, {"metadata": {"k": 1}}, {"metadata": []}):

            def save(s, kind=kind, words=words):
                words = dict(words, metadata=dict(words["metadata"])) if isinstance(words.get("metadata"), dict) else words
                return s.part.save_model(kind(), s.path("model"), **words), pathlib.Path(s.path("model"))

            yield f"save_model {name} {words}", save
        for other in MODELS:
            for strict in (True, False):

                def load(s, kind=kind, other=other, strict=strict):
                    s.part.save_model(kind(), s.path("model"))
                    model = other()
                    for parameter in model.parameters():
                        parameter.data.zero_()
                    missing, unexpected = s.part.load_model(model, s.path("model"), strict=strict)
                    return type(missing).__name__, missing, sorted(unexpected), dict(model.state_dict())

                yield f"load_model {name} into {other.__name__}, strict {strict}", load
    for file in ("missing", "folder", "text", "nothing", "good", "none"):
        for words in ({}, {"backend": "pread"}, {"strict": False}, {"device": "gpu"}, {"backend": "x"}):
            yield f"load_model of {file} {words}", lambda s, file=file, words=words: s.part.load_model(Plain(), s.path(file), **words)
    for value in (None, 1, {}, Plain):
        yield f"save_model({value!r})", lambda s, value=value: s.part.save_model(value, s.path("model"))
        yield f"load_model({value!r})", lambda s, value=value: s.part.load_model(value, s.path("good"))
    yield "save_model()", lambda s: s.part.save_model()
    yield "load_model()", lambda s: s.part.load_model()
    yield "load_model(positional)", lambda s: (s.part.save_model(Plain(), s.path("model")), s.part.load_model(Plain(), s.path("model"), True, "cpu"))[1]
    yield "load_model(five positional)", lambda s: s.part.load_model(Plain(), s.path("good"), True, "cpu", "mmap")
    yield "save_model to a folder", lambda s: s.part.save_model(Plain(), s.path("folder"))


def helpers():
    yield from named("_getdtype", ["F32", "BOOL", "BF16", "F8_E4M3", "F4", "f32", "", None, 1], lambda s, v: repr(s.part._getdtype(v)))
    view = {"dtype": "F32", "shape": [2], "data": bytearray(8)}
    views = [[("a", view)], [("a", {**view, "shape": [3]})], [("a", {**view, "dtype": "X"})], [("a", {**view, "data": bytearray(3)})], [("a", {"dtype": "F32", "shape": [0, 2], "data": b""})], [("a", {})]]
    yield from named("_view2torch", views, lambda s, v: s.part._view2torch(v))
    for device in (torch.device("cpu"), torch.device("meta"), torch.device("cpu", 0)):
        yield f"load_file(device={device!r})", lambda s, device=device: s.part.load_file(s.path("good"), device=device)
    for device in ("cuda", "cuda:0", 0):
        yield f"load_file(device={device!r})", lambda s, device=device: s.part.load_file(s.path("good"), device=device)
    yield "load: written", lambda s: [t.fill_(1) for _, t in sorted(s.part.load(FILES["good"]).items())]
    yield "load_file: written", lambda s: ([t.fill_(1) for _, t in sorted(s.part.load_file(s.path("good")).items())], pathlib.Path(s.path("good")))


def calls():
    yield from sharing()
    yield from models()
    yield from helpers()
