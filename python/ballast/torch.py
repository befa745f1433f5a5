# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and PyTorch tensors: the interface of ``safetensors.torch``.

Loaded tensors are views of the file that may be written, each with a storage of its own; the file never changes. ``load_file`` and
``load_model`` read every other format too (``.pt``, shards, …), without running anything in it.
"""
from __future__ import annotations

import copy
import os
from collections import defaultdict
from typing import Any, Dict, List, Optional, Set, Tuple, Union

import torch

from ._frameworks import CODES, NAMES, Spec, torch_tools
from ._safetensors import deserialize, device_of, load_path, parse, safe_open  # noqa: F401  (some, here and below, are what ``safetensors.torch`` has)
from ._serialize import TensorSpec, save_specs, serialize, serialize_file, serialize_specs  # noqa: F401

StrPath = Union[str, "os.PathLike[str]"]

_TYPES: Dict[str, torch.dtype] = {code: getattr(torch, name) for code, name in NAMES.items() if hasattr(torch, name)}
_float8_e4m3fn, _float8_e4m3fnuz = getattr(torch, "float8_e4m3fn", None), getattr(torch, "float8_e4m3fnuz", None)
_float8_e5m2, _float8_e5m2fnuz = getattr(torch, "float8_e5m2", None), getattr(torch, "float8_e5m2fnuz", None)
_float8_e8m0, _float4_e2m1_x2 = getattr(torch, "float8_e8m0fnu", None), getattr(torch, "float4_e2m1fn_x2", None)
_SIZE: Dict[torch.dtype, int] = {dtype: torch.empty(0, dtype=dtype).element_size() for dtype in _TYPES.values()}
_NAMES: Dict[torch.dtype, str] = {dtype: code for code, dtype in _TYPES.items()}


def _storage(tensor: torch.Tensor) -> Any:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()  # the latter before PyTorch 2


def storage_ptr(tensor: torch.Tensor) -> int:
    """Where the storage behind a tensor begins; 0 where it has none (sparse ones)."""
    try:
        return _storage(tensor).data_ptr()
    except NotImplementedError:
        return 0


def storage_size(tensor: torch.Tensor) -> int:
    """How many bytes the storage behind a tensor has."""
    return _storage(tensor).nbytes()


def _end_ptr(tensor: torch.Tensor) -> int:
    """One byte behind the last element, wherever the strides have put it."""
    if tensor.is_contiguous():
        return tensor.data_ptr() + tensor.nelement() * tensor.element_size()
    if not tensor.nelement():
        return tensor.data_ptr()
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _filter_shared_not_shared(tensors: List[Set[str]], state_dict: Dict[str, torch.Tensor]) -> List[Set[str]]:
    """Names on one storage, parted where their bytes do not overlap."""
    parted: List[Set[str]] = []
    for names in tensors:
        if len(names) < 2:
            parted.append(names)
            continue
        ranges = sorted((state_dict[name].data_ptr(), _end_ptr(state_dict[name]), name) for name in names)
        end = -1
        for begin, stop, name in ranges:
            if begin >= end:
                parted.append({name})
            else:
                parted[-1].add(name)
            end = max(end, stop)
    return parted


def _find_shared_tensors(state_dict: Dict[str, torch.Tensor]) -> List[Set[str]]:
    """Sets of names whose tensors overlap in memory; a tensor that shares nothing is a set of its own."""
    groups: Dict[Tuple[Any, int, int], Set[str]] = defaultdict(set)
    for name, tensor in state_dict.items():
        if tensor.device.type == "meta":
            continue
        pointer = storage_ptr(tensor)
        if pointer and storage_size(tensor):
            groups[tensor.device, pointer, storage_size(tensor)].add(name)
    return _filter_shared_not_shared(list(groups.values()), state_dict)


def _is_complete(tensor: torch.Tensor) -> bool:
    """The tensor is all of its storage."""
    if tensor.device.type == "meta":
        return True
    return tensor.data_ptr() == storage_ptr(tensor) and tensor.nelement() * tensor.element_size() == storage_size(tensor)


def _remove_duplicate_names(
    state_dict: Dict[str, torch.Tensor], *, preferred_names: Optional[List[str]] = None, discard_names: Optional[List[str]] = None
) -> Dict[str, List[str]]:
    """Kept name → names that are left out, for each set of tensors that share memory."""
    preferred, discarded = set(preferred_names or ()), set(discard_names or ())
    removed: Dict[str, List[str]] = defaultdict(list)
    for shared in _find_shared_tensors(state_dict):
        complete = {name for name in shared if _is_complete(state_dict[name])}
        if not complete:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name to keep"
                f" for saving amongst: {shared}. None is covering the entire storage.Refusing to save/load the model"
                " since you could be storing much more memory than needed. Please refer to"
                " https://huggingface.co/docs/safetensors/torch_shared_tensors for more information. Or open an issue."
            )
        kept = min(complete & preferred or complete - discarded or complete)
        for name in sorted(shared - {kept}):
            removed[kept].append(name)
    return removed


def _overlap(tensors: Dict[str, torch.Tensor]) -> bool:
    """Some two tensors may share bytes; told without a look at storages and devices, which costs more than all the rest."""
    ranges = sorted((tensor.data_ptr(), _end_ptr(tensor)) for tensor in tensors.values() if tensor.nelement())
    return any(following[0] < this[1] for this, following in zip(ranges, ranges[1:]))


def _evaluate_tensors_for_save(tensors: Dict[str, torch.Tensor]) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    sparse = []
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
        if tensor.layout != torch.strided:
            sparse.append(name)
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which this library does not support."
            " You can make it a dense tensor before saving with `.to_dense()` but be aware this might"
            " make a much larger file than needed."
        )
    if not _overlap(tensors):
        return
    failing = [names for names in _find_shared_tensors(tensors) if len(names) > 1]
    if failing:
        raise RuntimeError(
            f"""
            Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them again: {failing}.
            A potential way to correctly save your model is to use `save_model`.
            More information at https://huggingface.co/docs/safetensors/torch_shared_tensors
            """
        )


def _freed(tensor: torch.Tensor) -> bool:
    end = (tensor.storage_offset() + tensor.nelement()) * tensor.element_size()  # of a contiguous tensor
    return tensor.nelement() > 0 and end > storage_size(tensor)


def _on_cpu(tensor: torch.Tensor, name: str) -> torch.Tensor:
    if not tensor.is_contiguous():
        raise ValueError(
            f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you"
            " are trying to save tensors which are reference of each other in which case it's recommended to save"
            " only the full tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to"
            " pack it before saving."
        )
    if tensor.device.type != "meta" and tensor.layout == torch.strided and _freed(tensor):
        raise ValueError(f"tensor `{name}` has no memory: its storage was freed or made smaller, as sharded training does with what is not gathered")
    if tensor.is_conj() or tensor.is_neg():  # still to be done to the bytes that lie there
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor if tensor.device.type == "cpu" else tensor.to("cpu")


def _spec(name: str, tensor: torch.Tensor, others: Optional[Dict[str, str]] = None) -> Spec:
    """``others``: codes of what Safetensors has no dtype for, by PyTorch's names."""
    tensor = _on_cpu(tensor, name)
    called = str(tensor.dtype).split(".")[-1]
    code = _NAMES.get(tensor.dtype) or CODES.get(called) or (others or {}).get(called)
    if code is None:
        raise KeyError(tensor.dtype)
    shape = tuple(tensor.shape)
    if code == "F4":
        shape = shape[:-1] + (shape[-1] * 2,)
    return (name, code, shape, tensor.data_ptr(), tensor.nelement() * tensor.element_size(), None, tensor)


def _flatten(tensors: Dict[str, torch.Tensor]) -> List[Spec]:
    _evaluate_tensors_for_save(tensors)
    return [_spec(name, tensor) for name, tensor in tensors.items()]


def _flatten_as_ptr(tensors: Dict[str, torch.Tensor], keep_alive_buffer: List[Any]) -> Dict[str, TensorSpec]:
    """The tensors by their addresses; what must stay alive is put into the list."""
    _evaluate_tensors_for_save(tensors)
    flattened = {}
    for name, tensor in tensors.items():
        here = _on_cpu(tensor, name)
        if here.dtype not in _SIZE:
            raise KeyError(here.dtype)
        keep_alive_buffer.append(here)
        flattened[name] = TensorSpec(
            dtype=str(here.dtype).split(".")[-1], shape=here.shape, data_ptr=here.data_ptr(), data_len=here.nelement() * here.element_size()
        )
    return flattened


def save(tensors: Dict[str, torch.Tensor], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return serialize_specs(_flatten(tensors), metadata)


def save_file(tensors: Dict[str, torch.Tensor], filename: StrPath, metadata: Optional[Dict[str, str]] = None, *, durable: bool = True) -> None:
    """A Safetensors file of the tensors, written whole or not at all.

    ``durable=False`` does not wait until it is on the disk, as ``safetensors`` never does: faster, and lost in a power cut.
    """
    save_specs(_flatten(tensors), filename, metadata, durable)


def load(data: bytes) -> Dict[str, torch.Tensor]:
    """The tensors of a Safetensors file in memory, in memory of their own."""
    return parse(data)._in_memory()._torch_dict(*torch_tools())


def load_file(filename: StrPath, device: Union[str, int] = "cpu", *, backend: str = "mmap") -> Dict[str, torch.Tensor]:
    """The tensors of a file: views of it that may be written; with ``backend="pread"`` in memory of their own.

    A ``.pt`` file gives the tensors of its state dict, found by itself (``ballast.open(...).root("key")`` takes another).
    """
    return load_path(filename, "pytorch", device_of(device), backend=backend)


def save_model(model: torch.nn.Module, filename: str, metadata: Optional[Dict[str, str]] = None, force_contiguous: bool = True) -> None:
    """A model's state dict. Of tensors that share memory one is written; which name stands for which is in the metadata."""
    state_dict = model.state_dict()
    metadata = copy.copy(metadata)
    for kept, removed in _remove_duplicate_names(state_dict).items():
        for name in removed:
            metadata = {} if metadata is None else metadata
            if name not in metadata:
                metadata[name] = kept
            del state_dict[name]
    if force_contiguous:
        state_dict = {name: tensor.contiguous() for name, tensor in state_dict.items()}
    try:
        save_file(dict(state_dict), filename, metadata=metadata)
    except ValueError as error:
        raise ValueError(f"{error} Or use save_model(..., force_contiguous=True), read the docs for potential caveats.") from None


def load_model(
    model: torch.nn.Module, filename: StrPath, strict: bool = True, device: Union[str, int] = "cpu", *, backend: str = "mmap"
) -> Tuple[Set[str], List[str]]:
    """Loads a file into a model whose tensors may share memory: (names the file lacks, names the model lacks)."""
    state_dict = load_file(filename, device=device, backend=backend)
    aliases = _remove_duplicate_names(model.state_dict(), preferred_names=list(state_dict))
    absent, surplus = model.load_state_dict(state_dict, strict=False)
    missing, unexpected = set(absent), list(surplus)
    for removed in aliases.values():
        for name in removed:
            if name in missing:
                missing.remove(name)
            else:
                unexpected.append(name)
    if strict and (missing or unexpected):
        text = f"Error(s) in loading state_dict for {model.__class__.__name__}:"
        if missing:
            text += "\n    Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(missing))
        if unexpected:
            text += "\n    Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(unexpected))
        raise RuntimeError(text)
    return missing, unexpected


def _getdtype(dtype_str: str) -> torch.dtype:
    return _TYPES[dtype_str]


def _view2torch(safeview: List[Tuple[str, Dict[str, Any]]]) -> Dict[str, torch.Tensor]:
    """What deserialize() gives, as tensors of its bytearrays."""
    result = {}
    for name, entry in safeview:
        dtype, shape = _getdtype(entry["dtype"]), list(entry["shape"])
        if entry["dtype"] == "F4":
            shape[-1] //= 2
        data = entry["data"]
        flat = torch.frombuffer(data, dtype=torch.uint8).view(dtype) if len(data) else torch.empty(0, dtype=dtype)
        result[name] = flat.reshape(shape)
    return result


def _to_ndarray(tensor: torch.Tensor, name: str = "") -> Tuple[Any, torch.Tensor]:
    """The tensor's bytes as a NumPy array without a copy, and what keeps them alive."""
    here = _on_cpu(tensor, name)
    return here.detach().view(-1).view(torch.uint8).numpy() if here.nelement() else here.detach().numpy(), here


def _tobytes(tensor: torch.Tensor, name: str) -> bytes:
    return _to_ndarray(tensor, name)[0].tobytes()


__all__ = ["save", "save_file", "load", "load_file", "save_model", "load_model"]
