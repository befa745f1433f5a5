# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and MLX arrays: the interface of ``safetensors.mlx``."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import mlx.core as mx
import numpy as np

from . import numpy
from ._safetensors import from_numpy


def save(tensors: Dict[str, mx.array], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return numpy.save(_mx2np(tensors), metadata=metadata)


def save_file(tensors: Dict[str, mx.array], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    numpy.save_file(_mx2np(tensors), filename, metadata=metadata)


def load(data: bytes) -> Dict[str, mx.array]:
    """The tensors of a Safetensors file in memory."""
    return _np2mx(numpy.load(data))


def load_file(filename: Union[str, "os.PathLike[str]"], *, backend: str = "mmap") -> Dict[str, mx.array]:
    """The tensors of a Safetensors file."""
    return _np2mx(numpy.load_file(filename, backend=backend))


def _np2mx(arrays: Dict[str, Any]) -> Dict[str, mx.array]:
    return {name: from_numpy(array, "mlx") for name, array in arrays.items()}


def _mx2np(tensors: Dict[str, mx.array]) -> Dict[str, Any]:
    return {name: np.asarray(tensor) for name, tensor in tensors.items()}
