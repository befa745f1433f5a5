# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and NumPy arrays: the interface of ``safetensors.numpy``.

Loaded arrays are views of the file that may be written; the file never changes. Arrays are saved right whatever their memory order
and byte order.
"""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from ._frameworks import NAMES, SMALL_FLOATS, Spec, numpy_spec, numpy_tools
from ._safetensors import deserialize, load_bytes, load_path, safe_open  # noqa: F401  (some, here and below, are what ``safetensors.numpy`` has)
from ._serialize import TensorSpec, save_specs, serialize, serialize_file, serialize_specs  # noqa: F401

_TYPES = {code: bool if name == "bool" else getattr(np, name) for code, name in NAMES.items() if name == "bool" or hasattr(np, name)}


def _specs(tensor_dict: Dict[str, np.ndarray]) -> List[Spec]:
    return [numpy_spec(name, array) for name, array in tensor_dict.items()]


def _flatten(tensor_dict: Dict[str, np.ndarray], keep_alive_buffer: List[Any]) -> Dict[str, TensorSpec]:
    """The arrays by their addresses, as :func:`serialize` takes them; what must stay alive is put into the list."""
    flattened = {}
    for name, array in tensor_dict.items():
        here = array if _is_little_endian(array) else array.astype(array.dtype.newbyteorder("<"))
        here = here if here.flags.c_contiguous else here.copy(order="C")
        keep_alive_buffer.append(here)
        flattened[name] = TensorSpec(dtype=here.dtype.name, shape=here.shape, data_ptr=here.ctypes.data, data_len=here.nbytes)
    return flattened


def save(tensor_dict: Dict[str, np.ndarray], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the arrays, as bytes."""
    return serialize_specs(_specs(tensor_dict), metadata)


def save_file(tensor_dict: Dict[str, np.ndarray], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None, *, durable: bool = True) -> None:
    """A Safetensors file of the arrays, written whole or not at all.

    ``durable=False`` does not wait until it is on the disk, as ``safetensors`` never does: faster, and lost in a power cut.
    """
    save_specs(_specs(tensor_dict), filename, metadata, durable)


def load(data: bytes) -> Dict[str, np.ndarray]:
    """The arrays of a Safetensors file in memory, in memory of their own."""
    return load_bytes(data, "numpy")


def load_file(filename: Union[str, "os.PathLike[str]"], *, backend: str = "mmap") -> Dict[str, np.ndarray]:
    """The arrays of a file: views of it that may be written; with ``backend="pread"`` in memory of their own.

    A ``.pt`` file gives those of its state dict, found by itself (``ballast.open(...).root("key")`` takes another).
    """
    return load_path(filename, "numpy", backend=backend)


def _is_little_endian(tensor: np.ndarray) -> bool:
    return tensor.dtype.newbyteorder("<") == tensor.dtype or tensor.dtype.itemsize == 1


def _getdtype(dtype_str: str) -> Any:
    return _TYPES[dtype_str]


def _view2np(safeview: List[Tuple[str, Dict[str, Any]]]) -> Dict[str, np.ndarray]:
    """What deserialize() gives, as arrays of its bytearrays."""
    result = {}
    for name, entry in safeview:
        code = entry["dtype"]
        dtype = numpy_tools()[1][code] if code in SMALL_FLOATS else _getdtype(code)
        result[name] = np.frombuffer(entry["data"], dtype).reshape(entry["shape"])
    return result
