# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and Paddle tensors: the interface of ``safetensors.paddle``."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import paddle

from . import numpy
from ._safetensors import from_numpy


def save(tensors: Dict[str, paddle.Tensor], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return numpy.save(_paddle2np(tensors), metadata=metadata)


def save_file(tensors: Dict[str, paddle.Tensor], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    numpy.save_file(_paddle2np(tensors), filename, metadata=metadata)


def load(data: bytes, device: str = "cpu") -> Dict[str, paddle.Tensor]:
    """The tensors of a Safetensors file in memory."""
    return {name: from_numpy(array, "paddle", device) for name, array in numpy.load(data).items()}


def load_file(filename: Union[str, "os.PathLike[str]"], device: str = "cpu", *, backend: str = "mmap") -> Dict[str, paddle.Tensor]:
    """The tensors of a Safetensors file."""
    return {name: from_numpy(array, "paddle", device) for name, array in numpy.load_file(filename, backend=backend).items()}


def _paddle2np(tensors: Dict[str, paddle.Tensor]) -> Dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
