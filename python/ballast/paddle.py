# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and Paddle tensors: the interface of ``safetensors.paddle``."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Union

import paddle

from . import numpy
from ._frameworks import Spec, code_of, numpy_spec
from ._safetensors import from_numpy, save_specs, serialize_specs


def save(tensors: Dict[str, paddle.Tensor], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return serialize_specs(_flatten(tensors), metadata)


def save_file(tensors: Dict[str, paddle.Tensor], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    save_specs(_flatten(tensors), filename, metadata)


def load(data: bytes, device: str = "cpu") -> Dict[str, paddle.Tensor]:
    """The tensors of a Safetensors file in memory."""
    return {name: from_numpy(array, "paddle", device) for name, array in numpy.load(data).items()}


def load_file(filename: Union[str, "os.PathLike[str]"], device: str = "cpu", *, backend: str = "mmap") -> Dict[str, paddle.Tensor]:
    """The tensors of a Safetensors file."""
    return {name: from_numpy(array, "paddle", device) for name, array in numpy.load_file(filename, backend=backend).items()}


def _flatten(tensors: Dict[str, paddle.Tensor]) -> List[Spec]:
    """Paddle shows bfloat16 to NumPy as uint16 and the 8-bit floats as int8; what they are the tensor's own dtype says."""
    return [numpy_spec(name, tensor.numpy(), code_of(str(tensor.dtype).split(".")[-1])) for name, tensor in tensors.items()]


def _paddle2np(tensors: Dict[str, paddle.Tensor]) -> Dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
