# SPDX-License-Identifier: Apache-2.0
"""Safetensors files and Paddle tensors: the interface of ``safetensors.paddle``."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
import paddle

from . import numpy  # noqa: F401  (``safetensors.paddle`` has it, as some of the next)
from ._adopt import adopt, carrying_tools, from_numpy
from ._frameworks import NAMES, Spec, code_of, numpy_spec
from ._safetensors import deserialize, device_of, load_bytes, load_path, safe_open  # noqa: F401
from ._serialize import TensorSpec, save_specs, serialize, serialize_file, serialize_specs  # noqa: F401

_TYPES = {code: getattr(paddle, name) for code, name in NAMES.items() if hasattr(paddle, name) and code not in ("U16", "U32", "U64")}
_SIZE = {dtype: carrying_tools()[1][code].itemsize for code, dtype in _TYPES.items()}
#: What has the same size in NumPy.
NPDTYPES = {
    dtype: bool if code == "BOOL" else np.float16 if code == "BF16" else np.uint8 if code.startswith("F8") else getattr(np, NAMES[code])
    for code, dtype in _TYPES.items()
}  # fmt: skip


def save(tensors: Dict[str, paddle.Tensor], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file of the tensors, as bytes."""
    return serialize_specs(_specs(tensors), metadata)


def save_file(tensors: Dict[str, paddle.Tensor], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file of the tensors, written whole or not at all."""
    save_specs(_specs(tensors), filename, metadata)


def load(data: bytes, device: str = "cpu") -> Dict[str, paddle.Tensor]:
    """The tensors of a Safetensors file in memory."""
    return load_bytes(data, "paddle", device)


def load_file(filename: Union[str, "os.PathLike[str]"], device: str = "cpu", *, backend: str = "mmap") -> Dict[str, paddle.Tensor]:
    """The tensors of a Safetensors file."""
    return load_path(filename, "paddle", device_of(device), backend=backend)


def _check(tensors: Any) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, paddle.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, paddle.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected paddle.Tensor but received {type(tensor)}")


def _code(tensor: paddle.Tensor) -> str:
    """Paddle shows bfloat16 to NumPy as uint16 and the 8-bit floats as int8; what they are the tensor's own dtype says."""
    return code_of(str(tensor.dtype).split(".")[-1])


def _specs(tensors: Dict[str, paddle.Tensor]) -> List[Spec]:
    _check(tensors)
    return [numpy_spec(name, tensor.numpy(), _code(tensor)) for name, tensor in tensors.items()]


def _flatten(tensors: Dict[str, paddle.Tensor], keep_alive_buffer: List[Any]) -> Dict[str, TensorSpec]:
    """The tensors by their addresses, as :func:`serialize` takes them; what must stay alive is put into the list."""
    _check(tensors)
    flattened = {}
    for name, tensor in tensors.items():
        data, owner = _to_ndarray(tensor, name)
        keep_alive_buffer.append((data, owner))
        flattened[name] = TensorSpec(dtype=NAMES[_code(tensor)], shape=tensor.shape, data_ptr=data.ctypes.data, data_len=data.nbytes)
    return flattened


def _to_ndarray(tensor: paddle.Tensor, name: str) -> Tuple[Any, Any]:
    """The tensor's bytes as a NumPy array, and what keeps them alive."""
    array = np.ascontiguousarray(tensor.numpy())
    return array.reshape(-1).view(np.uint8), array


def _getdtype(dtype_str: str) -> Any:
    return _TYPES[dtype_str]


def _view2paddle(safeview: List[Tuple[str, Dict[str, Any]]], device: str) -> Dict[str, paddle.Tensor]:
    """What deserialize() gives, as tensors."""
    dtypes = carrying_tools()[1]
    return {
        name: adopt(np.frombuffer(entry["data"], dtypes[entry["dtype"]]).reshape(entry["shape"]), entry["dtype"], "paddle", device) for name, entry in safeview
    }


def _np2paddle(numpy_dict: Dict[str, Any], device: str = "cpu") -> Dict[str, paddle.Tensor]:
    return {name: from_numpy(array, "paddle", device) for name, array in numpy_dict.items()}


def _paddle2np(paddle_dict: Dict[str, paddle.Tensor]) -> Dict[str, Any]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in paddle_dict.items()}
