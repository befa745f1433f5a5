# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and TensorFlow tensors: the interface of ``safetensors.tensorflow``."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import tensorflow as tf

from . import numpy
from ._adopt import from_numpy
from ._safetensors import load_bytes, load_path, safe_open  # noqa: F401  (the last is what ``safetensors.tensorflow`` has)


def save(tensors: Dict[str, tf.Tensor], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return numpy.save(_tf2np(tensors), metadata=metadata)


def save_file(tensors: Dict[str, tf.Tensor], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    numpy.save_file(_tf2np(tensors), filename, metadata=metadata)


def load(data: bytes) -> Dict[str, tf.Tensor]:
    """The tensors of a Safetensors file in memory."""
    return load_bytes(data, "tensorflow")


def load_file(filename: Union[str, "os.PathLike[str]"], *, backend: str = "mmap") -> Dict[str, tf.Tensor]:
    """The tensors of a Safetensors file."""
    return load_path(filename, "tensorflow", backend=backend)


def _np2tf(numpy_dict: Dict[str, Any]) -> Dict[str, tf.Tensor]:
    return {name: from_numpy(array, "tensorflow") for name, array in numpy_dict.items()}


def _tf2np(tf_dict: Dict[str, tf.Tensor]) -> Dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tf_dict.items()}
