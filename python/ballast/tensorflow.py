# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and TensorFlow tensors: the interface of ``safetensors.tensorflow``."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import tensorflow as tf

from . import numpy
from ._safetensors import from_numpy


def save(tensors: Dict[str, tf.Tensor], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return numpy.save(_tf2np(tensors), metadata=metadata)


def save_file(tensors: Dict[str, tf.Tensor], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    numpy.save_file(_tf2np(tensors), filename, metadata=metadata)


def load(data: bytes) -> Dict[str, tf.Tensor]:
    """The tensors of a Safetensors file in memory."""
    return _np2tf(numpy.load(data))


def load_file(filename: Union[str, "os.PathLike[str]"], *, backend: str = "mmap") -> Dict[str, tf.Tensor]:
    """The tensors of a Safetensors file."""
    return _np2tf(numpy.load_file(filename, backend=backend))


def _np2tf(arrays: Dict[str, Any]) -> Dict[str, tf.Tensor]:
    return {name: from_numpy(array, "tensorflow") for name, array in arrays.items()}


def _tf2np(tensors: Dict[str, tf.Tensor]) -> Dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
