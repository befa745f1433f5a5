# SPDX-License-Identifier: Apache-2.0
"""TensorSpec, serialize and serialize_file: tensors in memory as a Safetensors file, with the errors of ``safetensors``."""
from __future__ import annotations

import operator
import os
import re
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _native
from ._errors import MISALIGNED, SafetensorError
from ._frameworks import Spec, code_of, need_text


def _natural(argument: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"argument '{argument}': {error}") from None
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number >= 2**64:
        raise OverflowError("int too big to convert")
    return number


def _dims(shape: Any) -> List[int]:
    if isinstance(shape, str):
        raise TypeError("argument 'shape': Can't extract `str` to `Vec`")
    if not hasattr(type(shape), "__getitem__") or isinstance(shape, dict):
        need_text("shape", shape, Sequence)
    return [_natural("shape", n) for n in shape]


class TensorSpec:
    """A tensor in memory, by its address: what :func:`serialize` takes. Whoever makes it keeps the memory alive.

    ``dtype`` is a framework's name ("float32"); the attribute is Safetensors' code ("F32").
    """

    __slots__ = ("_dtype", "_shape", "_data_ptr", "_data_len")

    def __init__(self, *, dtype: str, shape: Sequence[int], data_ptr: int, data_len: int) -> None:
        need_text("dtype", dtype)
        code, dims = code_of(dtype), _dims(shape)
        if code == "F4" and dims:  # two elements in each of PyTorch's
            if dims[-1] >= 2**63:
                raise SafetensorError(f"F4 last-dim {dims[-1]} doubled to logical shape overflows usize", "size-overflow")
            dims[-1] *= 2
        values = (code, dims, _natural("data_ptr", data_ptr), _natural("data_len", data_len))
        for name, value in zip(self.__slots__, values):
            object.__setattr__(self, name, value)

    @property
    def dtype(self) -> str:
        """Safetensors' code."""
        return self._dtype  # type: ignore[attr-defined,no-any-return]

    @property
    def shape(self) -> List[int]:
        """As the header will have it: the elements of packed dtypes are counted one by one."""
        return list(self._shape)  # type: ignore[attr-defined]

    @property
    def data_ptr(self) -> int:
        """Where the bytes begin."""
        return self._data_ptr  # type: ignore[attr-defined,no-any-return]

    @property
    def data_len(self) -> int:
        """How many they are."""
        return self._data_len  # type: ignore[attr-defined,no-any-return]

    def __setattr__(self, name: str, value: Any) -> None:
        if "_" + name in self.__slots__:
            raise AttributeError(f"attribute '{name}' of 'builtins.TensorSpec' objects is not writable")
        raise AttributeError(f"'builtins.TensorSpec' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __init_subclass__(cls) -> None:
        raise TypeError("type 'builtins.TensorSpec' is not an acceptable base type")

    def __reduce__(self) -> Any:  # it is an address of this process
        raise TypeError("cannot pickle 'builtins.TensorSpec' object")

    def __repr__(self) -> str:
        return f"TensorSpec(dtype={self.dtype!r}, shape={self.shape}, data_ptr={self.data_ptr}, data_len={self.data_len})"


def _specs(tensor_dict: Dict[str, TensorSpec]) -> List[Spec]:
    specs: List[Spec] = []
    need_text("tensor_dict", tensor_dict, dict)
    for name, spec in tensor_dict.items():
        need_text("tensor_dict", name)
        need_text("tensor_dict", spec, TensorSpec)
        specs.append((name, spec.dtype, tuple(spec._shape), spec.data_ptr, spec.data_len, None, None))  # type: ignore[attr-defined]
    return specs


def _is_too_large(spec: Spec) -> bool:
    """As ``safetensors`` counts: dimension by dimension in 64 bits, so that a zero saves what stands behind it."""
    bits = 1
    for n in spec[2]:
        bits *= n
        if bits >= 2**64:
            return True
    size = re.search("[0-9]+", spec[1])
    return bits * (int(size.group()) if size else 8) >= 2**64


def _is_misaligned(spec: Spec) -> bool:
    bits = int(spec[1][1]) if spec[1][:2] in ("F4", "F6") else 8
    for n in spec[2]:
        bits *= n
    return bits % 8 != 0


def _refused(error: Exception, specs: List[Spec]) -> Exception:
    """An error of serializing, in the words of ``safetensors`` where it has some."""
    if isinstance(error, OverflowError) or any(_is_too_large(spec) for spec in specs):
        wide = next((f"tensor {spec[0]!r}: {list(spec[2])}" for spec in specs if _is_too_large(spec) or max(spec[2], default=0) >= 2**63), "")
        return SafetensorError("Error while serializing: overflow computing buffer size from shape and/or element type", "size-overflow", "", wide)
    if type(error) is not SafetensorError or error.message.startswith("Error while "):
        return error
    text = {"size-mismatch": "invalid shape, data type, or offset for tensor", "misaligned": MISALIGNED}.get(error.code)
    if error.code == "size-mismatch" and any(_is_misaligned(spec) for spec in specs):
        text = MISALIGNED
    return SafetensorError("Error while serializing: " + (text or error.message), error.code, error.where, error.message if text else "")


def _need_texts(specs: List[Spec], metadata: Optional[Dict[str, str]]) -> None:
    for spec in specs:
        need_text("tensor_dict", spec[0])
    if metadata is not None:
        need_text("metadata", metadata, dict)
    for key, value in (metadata or {}).items():
        need_text("metadata", key)
        need_text("metadata", value)


def need_path(filename: Any) -> None:
    try:
        os.fspath(filename)  # a number would be a descriptor of the caller's
    except TypeError as error:
        raise TypeError(f"argument 'filename': {error}") from None


def serialize_specs(specs: List[Spec], metadata: Optional[Dict[str, str]]) -> bytes:
    _need_texts(specs, metadata)
    try:
        return _native.serialize(_native.from_specs(specs, metadata))
    except (SafetensorError, OverflowError) as error:
        raise _refused(error, specs) from None


def save_specs(specs: List[Spec], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]], durable: bool = True) -> None:
    need_path(filename)
    if b"\0" in os.fsencode(filename):
        raise SafetensorError(f"Error while serializing: a path cannot have a NUL in it: {filename!r}")
    _need_texts(specs, metadata)
    try:
        _native.save(_native.from_specs(specs, metadata), filename, {"verbatim": True, "durable": durable})
    except (SafetensorError, OverflowError) as error:
        raise _refused(error, specs) from None


def serialize(tensor_dict: Dict[str, TensorSpec], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file as bytes."""
    return serialize_specs(_specs(tensor_dict), metadata)


def serialize_file(tensor_dict: Dict[str, TensorSpec], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file on the disk: whole under its name, or not there."""
    save_specs(_specs(tensor_dict), filename, metadata)
