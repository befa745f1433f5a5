# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and JAX arrays: the interface of ``safetensors.flax``."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import numpy as np
from jax import Array

from . import numpy
from ._adopt import from_numpy
from ._safetensors import load_bytes, load_path, safe_open  # noqa: F401  (the last is what ``safetensors.flax`` has)


def save(tensors: Dict[str, Array], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return numpy.save(_jnp2np(tensors), metadata=metadata)


def save_file(tensors: Dict[str, Array], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    numpy.save_file(_jnp2np(tensors), filename, metadata=metadata)


def load(data: bytes) -> Dict[str, Array]:
    """The tensors of a Safetensors file in memory."""
    return load_bytes(data, "flax")


def load_file(filename: Union[str, "os.PathLike[str]"], *, backend: str = "mmap") -> Dict[str, Array]:
    """The tensors of a Safetensors file."""
    return load_path(filename, "flax", backend=backend)


def _np2jnp(numpy_dict: Dict[str, Any]) -> Dict[str, Array]:
    return {name: from_numpy(array, "flax") for name, array in numpy_dict.items()}


def _jnp2np(jnp_dict: Dict[str, Array]) -> Dict[str, Any]:
    return {name: np.asarray(tensor) for name, tensor in jnp_dict.items()}
