# SPDX-License-Identifier: Apache-2.0
"""Which dtype is called what in NumPy and PyTorch, and the few things the compiled module needs of them."""
from __future__ import annotations

import functools
from typing import Any, Dict, Tuple

from . import _native
from ._errors import SafetensorError

# Safetensors' code: the name frameworks use.
NAMES = _native.DTYPES
CODES = {name: code for code, name in NAMES.items()}

# What only .pt files hold: as NumPy sees the elements they are stored as.
_STORED = {"C128": "complex128", "QI8": "int8", "QU8": "uint8", "QI32": "int32", "BITS8": "uint8", "BITS16": "uint16"}
SMALL_FLOATS = {"BF16", "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2", "F8_E5M2FNUZ", "F8_E8M0"}


class _NumpyDtypes(Dict[str, Any]):
    """Code → numpy.dtype, found when it is first needed."""

    def __missing__(self, code: str) -> Any:
        import numpy

        if code in SMALL_FLOATS:
            try:
                import ml_dtypes
            except ImportError:
                raise TypeError(f"data type {NAMES[code]!r} not understood") from None
            dtype = numpy.dtype(getattr(ml_dtypes, NAMES[code]))
        else:
            name = NAMES.get(code) if code != "F4" else None
            name = name or _STORED.get(code)
            if name is None:
                raise SafetensorError(f"Dtype not understood: {code}", "bad-dtype")
            dtype = numpy.dtype(name)
        self[code] = dtype
        return dtype


# DLPack's types that every PyTorch takes; all others travel as integers of their size.
_DIRECT = {"U8", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64", "C64", "C128"}
_CARRIER = {"U16": "I16", "U32": "I32", "U64": "I64"}
_TORCH_STORED = {"QI8": "I8", "QU8": "U8", "QI32": "I32", "BITS8": "U8", "BITS16": "I16"}


class _TorchWays(Dict[str, Tuple[str, Any, int]]):
    """Code → (code to travel as, torch.dtype to view it as, elements in a byte)."""

    def __missing__(self, code: str) -> Tuple[str, Any, int]:
        import torch

        way: Tuple[str, Any, int]
        if code in _DIRECT:
            way = (code, None, 1)
        elif code in _TORCH_STORED:
            way = (_TORCH_STORED[code], None, 1)
        elif code in NAMES and hasattr(torch, NAMES[code]):
            way = (_CARRIER.get(code, "U8"), getattr(torch, NAMES[code]), 2 if code == "F4" else 1)
        else:
            raise SafetensorError(f"Dtype not understood: {code}", "bad-dtype")
        self[code] = way
        return way


@functools.lru_cache(maxsize=None)
def numpy_tools() -> Tuple[Any, Any]:
    """(numpy.ndarray, dtypes by code)"""
    import numpy

    return numpy.ndarray, _NumpyDtypes()


@functools.lru_cache(maxsize=None)
def torch_tools() -> Tuple[Any, Any]:
    """(capsule → torch.Tensor, ways by code)"""
    import torch

    from_dlpack = getattr(torch._C, "_from_dlpack", None)
    if from_dlpack is None:
        import torch.utils.dlpack

        from_dlpack = torch.utils.dlpack.from_dlpack
    return from_dlpack, _TorchWays()


# A tensor of memory, as the compiled module takes it: name, code, shape, address, bytes, strides or None, owner or None.
Spec = Tuple[str, str, Any, int, int, Any, Any]


# In the order in which the published package lists them.
_LISTED = (
    "bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, float64, bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, "
    "float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn_x2, complex64"
)


def need_text(argument: str, value: Any, kind: type = str) -> None:
    """A TypeError in the words of the published package."""
    if not isinstance(value, kind):
        shown = "'None'" if value is None else f"'{type(value).__name__}' object"
        raise TypeError(f"argument '{argument}': {shown} is not an instance of '{kind.__name__}'")


def code_of(name: str) -> str:
    """A framework's name of a dtype as Safetensors' code."""
    try:
        return CODES[name]
    except KeyError:
        raise SafetensorError(f'Unknown dtype "{name}". Supported dtypes: {_LISTED}', "bad-dtype") from None


def dtype_name(dtype: Any) -> str:
    """A dtype as the compiled module reads it: text as it is, NumPy's and PyTorch's own objects by their names."""
    if isinstance(dtype, str):
        return dtype
    if type(dtype).__module__ == "torch":
        return str(dtype)
    if dtype is None:  # which NumPy takes for float64
        raise TypeError("a dtype is wanted, not None")
    import numpy

    return numpy.dtype(dtype).name


def numpy_spec(name: str, array: Any, code: str = "") -> Spec:
    """An array of any memory order and byte order; copied only where neither strides nor bytes can be taken as they are."""
    dtype = array.dtype
    if not code:
        code = code_of(dtype.name)
    import numpy

    if dtype.byteorder == ">" or (dtype.byteorder == "=" and not _LITTLE):
        array = array.byteswap().view(dtype.newbyteorder())
    if not isinstance(array, numpy.ndarray):
        array = numpy.asarray(array)
    if array.flags.c_contiguous:
        return (name, code, array.shape, array.__array_interface__["data"][0], array.nbytes, None, array)
    item = array.itemsize
    if any(stride < 0 or stride % item for stride in array.strides):
        array = numpy.ascontiguousarray(array)
        return (name, code, array.shape, array.__array_interface__["data"][0], array.nbytes, None, array)
    strides = tuple(stride // item for stride in array.strides)
    extent = (sum((n - 1) * s for n, s in zip(array.shape, strides)) + 1) * item if array.size else 0
    return (name, code, array.shape, array.__array_interface__["data"][0], extent, strides, array)


_LITTLE = __import__("sys").byteorder == "little"
