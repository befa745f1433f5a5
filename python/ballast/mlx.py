# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and MLX arrays: the interface of ``safetensors.mlx``. bfloat16 and float64 are what they are, which they are not there."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Union

import mlx.core as mx
import numpy as np

from . import numpy  # noqa: F401  (``safetensors.mlx`` has it, and safe_open)
from ._adopt import from_numpy
from ._frameworks import Spec, code_of, numpy_spec, numpy_tools
from ._safetensors import load_bytes, load_path, safe_open  # noqa: F401
from ._serialize import save_specs, serialize_specs


def save(tensors: Dict[str, mx.array], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return serialize_specs(_specs(tensors), metadata)


def save_file(tensors: Dict[str, mx.array], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    save_specs(_specs(tensors), filename, metadata)


def load(data: bytes) -> Dict[str, mx.array]:
    """The tensors of a Safetensors file in memory."""
    return load_bytes(data, "mlx")


def load_file(filename: Union[str, "os.PathLike[str]"], *, backend: str = "mmap") -> Dict[str, mx.array]:
    """The tensors of a Safetensors file."""
    return load_path(filename, "mlx", backend=backend)


def _bits(tensor: mx.array) -> Any:
    """NumPy has no bfloat16: integers that carry it."""
    return np.array(tensor.view(mx.uint16)) if _is_bfloat16(tensor) else np.array(tensor)


def _is_bfloat16(tensor: Any) -> bool:
    return isinstance(tensor, mx.array) and tensor.dtype == mx.bfloat16


def _specs(tensors: Dict[str, mx.array]) -> List[Spec]:
    specs = []
    for name, tensor in tensors.items():
        if isinstance(tensor, (np.ndarray, np.generic)):
            specs.append(numpy_spec(name, np.asarray(tensor)))
            continue
        if not isinstance(tensor, mx.array):
            raise ValueError(f"Key `{name}` is invalid, expected mlx.core.array but received {type(tensor)}")
        dtype = str(tensor.dtype).split(".")[-1]
        specs.append(numpy_spec(name, _bits(tensor), code_of("bool" if dtype == "bool_" else dtype)))
    return specs


def _np2mx(numpy_dict: Dict[str, Any]) -> Dict[str, mx.array]:
    return {name: from_numpy(array, "mlx") for name, array in numpy_dict.items()}


def _mx2np(mx_dict: Dict[str, mx.array]) -> Dict[str, Any]:
    return {name: _bits(tensor).view(numpy_tools()[1]["BF16"]) if _is_bfloat16(tensor) else np.asarray(tensor) for name, tensor in mx_dict.items()}
