# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and JAX arrays: the interface of ``safetensors.flax``."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import numpy as np
from jax import Array

from . import numpy
from ._safetensors import from_numpy


def save(tensors: Dict[str, Array], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return numpy.save(_jnp2np(tensors), metadata=metadata)


def save_file(tensors: Dict[str, Array], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    numpy.save_file(_jnp2np(tensors), filename, metadata=metadata)


def load(data: bytes) -> Dict[str, Array]:
    """The tensors of a Safetensors file in memory."""
    return _np2jnp(numpy.load(data))


def load_file(filename: Union[str, "os.PathLike[str]"], *, backend: str = "mmap") -> Dict[str, Array]:
    """The tensors of a Safetensors file."""
    return _np2jnp(numpy.load_file(filename, backend=backend))


def _np2jnp(arrays: Dict[str, Any]) -> Dict[str, Array]:
    return {name: from_numpy(array, "flax") for name, array in arrays.items()}


def _jnp2np(tensors: Dict[str, Array]) -> Dict[str, Any]:
    return {name: np.asarray(tensor) for name, tensor in tensors.items()}
