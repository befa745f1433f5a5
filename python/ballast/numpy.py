# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and NumPy arrays: the interface of ``safetensors.numpy``.

Loaded arrays are views of the file that may be written; the file never changes. Arrays are saved right whatever their memory order
and byte order.
"""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Union

import numpy as np

from ._frameworks import NAMES, Spec, numpy_spec, numpy_tools
from ._safetensors import open_file, parse, save_specs, serialize_specs, tensors_of

_TYPES = {code: getattr(np, "bool_" if name == "bool" else name) for code, name in NAMES.items() if name == "bool" or hasattr(np, name)}


def _flatten(tensor_dict: Dict[str, np.ndarray]) -> List[Spec]:
    return [numpy_spec(name, array) for name, array in tensor_dict.items()]


def save(tensor_dict: Dict[str, np.ndarray], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the arrays, as bytes."""
    return serialize_specs(_flatten(tensor_dict), metadata)


def save_file(tensor_dict: Dict[str, np.ndarray], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None, *, durable: bool = True) -> None:
    """A Safetensors file of the arrays, written whole or not at all.

    ``durable=False`` does not wait until it is on the disk, as ``safetensors`` never does: faster, and lost in a power cut.
    """
    save_specs(_flatten(tensor_dict), filename, metadata, durable)


def load(data: bytes) -> Dict[str, np.ndarray]:
    """The arrays of a Safetensors file in memory, in memory of their own."""
    return parse(data)._in_memory()._numpy_dict(*numpy_tools())


def load_file(filename: Union[str, "os.PathLike[str]"], *, backend: str = "mmap") -> Dict[str, np.ndarray]:
    """The arrays of a Safetensors file: views of it that may be written; with ``backend="pread"`` in memory of their own."""
    checkpoint: Any = open_file(filename, backend)
    if backend == "pread":
        checkpoint = checkpoint._in_memory()
    return tensors_of(checkpoint, "numpy", "cpu")


def _is_little_endian(array: np.ndarray) -> bool:
    return array.dtype.newbyteorder("<") == array.dtype or array.dtype.itemsize == 1


def _getdtype(code: str) -> Any:
    return _TYPES[code]
