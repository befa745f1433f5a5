# SPDX-License-Identifier: Apache-2.0
"""safe_open, serialize and the like: the interface of ``safetensors``, name for name."""
from __future__ import annotations

import functools
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _native
from ._adopt import adopt, carrying_tools
from ._errors import MissingFileError, SafetensorError, as_reference
from ._frameworks import Spec, code_of, numpy_tools, torch_tools
from ._slices import SafeSlice

_FRAMEWORKS = {
    "pt": "pytorch", "torch": "pytorch", "pytorch": "pytorch", "np": "numpy", "numpy": "numpy", "tf": "tensorflow",
    "tensorflow": "tensorflow", "jax": "flax", "flax": "flax", "mlx": "mlx", "paddle": "paddle",
}  # fmt: skip
_DEVICES = ("cpu", "cuda", "musa", "mps", "npu", "xpu", "xla", "mlu", "hpu")
_BACKENDS = ("mmap", "pread")


class TensorSpec:
    """A tensor in memory, by its address: what :func:`serialize` takes. Whoever makes it keeps the memory alive.

    ``dtype`` is a framework's name ("float32"); the attribute is Safetensors' code ("F32").
    """

    __slots__ = ("dtype", "shape", "data_ptr", "data_len")

    dtype: str
    shape: Tuple[int, ...]
    data_ptr: int
    data_len: int

    def __init__(self, *, dtype: str, shape: Sequence[int], data_ptr: int, data_len: int) -> None:
        code = code_of(dtype)
        dims = tuple(int(n) for n in shape)
        if code == "F4":  # two elements in each of PyTorch's
            if not dims:
                raise SafetensorError("float4_e2m1fn_x2 requires at least one dimension", "misaligned")
            dims = dims[:-1] + (dims[-1] * 2,)
        for name, value in (("dtype", code), ("shape", dims), ("data_ptr", int(data_ptr)), ("data_len", int(data_len))):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'TensorSpec' objects is not writable")

    def __repr__(self) -> str:
        return f"TensorSpec(dtype={self.dtype!r}, shape={list(self.shape)}, data_ptr={self.data_ptr}, data_len={self.data_len})"


def _specs(tensor_dict: Dict[str, TensorSpec]) -> List[Spec]:
    specs: List[Spec] = []
    for name, spec in tensor_dict.items():
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"argument 'tensor_dict': '{type(spec).__name__}' object cannot be converted to 'TensorSpec'")
        specs.append((name, spec.dtype, spec.shape, spec.data_ptr, spec.data_len, None, None))
    return specs


def _saying(prefix: str, error: SafetensorError) -> SafetensorError:
    if type(error) is not SafetensorError or error.message.startswith("Error "):
        return error
    return SafetensorError(prefix + error.message, error.code, error.where)


def serialize_specs(specs: List[Spec], metadata: Optional[Dict[str, str]]) -> bytes:
    try:
        return _native.serialize(_native.from_specs(specs, metadata))
    except SafetensorError as error:
        raise _saying("Error while serializing: ", error) from None


def save_specs(specs: List[Spec], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]], durable: bool = True) -> None:
    try:
        _native.save(_native.from_specs(specs, metadata), filename, {"verbatim": True, "durable": durable})
    except SafetensorError as error:
        raise _saying("Error while serializing: ", error) from None


def serialize(tensor_dict: Dict[str, TensorSpec], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """A Safetensors file as bytes."""
    return serialize_specs(_specs(tensor_dict), metadata)


def serialize_file(tensor_dict: Dict[str, TensorSpec], filename: Union[str, "os.PathLike[str]"], metadata: Optional[Dict[str, str]] = None) -> None:
    """A Safetensors file on the disk: whole under its name, or not there."""
    save_specs(_specs(tensor_dict), filename, metadata)


def parse(data: bytes) -> Any:
    """A Checkpoint whose tensors are views of ``data``."""
    if not isinstance(data, bytes):
        data = bytes(memoryview(data))
    try:
        return _native.parse(data)
    except SafetensorError as error:
        raise as_reference(error, "Error while deserializing: ", data[:8]) from None


def deserialize(bytes: bytes) -> List[Tuple[str, Dict[str, Any]]]:  # called so by ``safetensors``
    """[(name, {"shape": list, "dtype": "F32", "data": bytearray}), …] of a Safetensors file in memory, in its order."""
    checkpoint = parse(bytes)
    return [
        (name, {"shape": list(tensor.shape), "dtype": tensor.dtype, "data": bytearray(tensor.tobytes())})
        for name, tensor in ((name, checkpoint._tensor(name)) for name in checkpoint._names())
    ]


def _head_of(filename: Any) -> bytes:
    try:
        with open(filename, "rb") as file:
            return file.read(8)
    except OSError:
        return b""


def open_file(filename: Any, backend: str) -> Any:
    """A Checkpoint of a Safetensors file, its errors in the words of ``safetensors``."""
    os.fspath(filename)  # a number would be a descriptor of the caller's
    if backend not in _BACKENDS:
        expected = ", ".join(f'"{name}"' for name in _BACKENDS)
        raise SafetensorError(f'backend "{backend}" is invalid (expected one of: {expected})')
    try:
        return _native.open(filename, {"safetensors": True, "io": "map" if backend == "mmap" else "read", "writable": backend == "mmap"})
    except MissingFileError as error:
        raise MissingFileError(f"No such file or directory: {os.fspath(filename)}", error.code, os.fspath(filename)) from None
    except SafetensorError as error:
        raise as_reference(error, "Error while deserializing header: ", _head_of(filename)) from None


def framework_of(name: Any) -> str:
    try:
        return _FRAMEWORKS[name]
    except (KeyError, TypeError):
        raise SafetensorError(f"framework {name} is invalid") from None


def device_of(device: Any) -> Union[str, int]:
    """A name with or without a number, or a bare number, which means whatever the framework thinks it does. None is the CPU."""
    if device is None:
        return "cpu"
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if not isinstance(device, str) and type(device).__module__.split(".")[0] == "torch":
        device = str(device)
    if isinstance(device, str):
        kind, colon, number = device.partition(":")
        if kind in _DEVICES and (not colon or number.isdigit()):
            return device
    raise SafetensorError(f"device {device} is invalid")


def is_cpu(device: Union[str, int]) -> bool:
    return isinstance(device, str) and device.partition(":")[0] == "cpu"


def is_cuda(device: Union[str, int]) -> bool:
    if isinstance(device, int):
        import torch

        return torch.cuda.is_available()
    return device.partition(":")[0] == "cuda"


class safe_open:
    """Opens a Safetensors file; tensors come one by one, as views of it.

    ``with safe_open("model.safetensors", framework="pt") as f: f.get_tensor("w")``

    Tensors of one handle share the file's memory; writing to them changes what this handle shows, never the file.
    ``backend="pread"`` maps nothing: each tensor is read into memory of its own.
    """

    _exact_slices = False

    def __init__(self, filename: Union[str, "os.PathLike[str]"], framework: str, device: Union[str, int] = "cpu", *, backend: str = "mmap") -> None:
        self._framework = framework_of(framework)
        self._device = device_of(device)
        if self._framework not in ("pytorch", "paddle") and not is_cpu(self._device):
            raise SafetensorError(f"Device {self._device} is not supported for framework {self._framework}")
        self._checkpoint: Any = None
        self._checkpoint = open_file(filename, backend)
        self._backend = backend

    def __repr__(self) -> str:
        return f"<safe_open: closed, {self._framework}>" if self._checkpoint is None else f"<safe_open: {len(self.keys())} tensors, {self._framework}>"

    def _open(self) -> Any:
        if self._checkpoint is None:
            raise SafetensorError("File is closed")
        return self._checkpoint

    def _tensor(self, name: str) -> Any:
        checkpoint = self._open()
        if name not in checkpoint:
            raise SafetensorError(f"File does not contain tensor {name}", "not-found")
        return checkpoint._tensor(name)

    def _give(self, tensor: Any) -> Any:
        """The framework's form of a Tensor, on its device."""
        if self._backend == "pread":
            tensor = tensor._copy()
        if self._framework == "pytorch":
            return on_device(tensor._torch(*torch_tools()), self._device)
        if self._framework == "numpy":
            return tensor._numpy(*numpy_tools())
        return adopt(tensor._numpy(*carrying_tools()), tensor.dtype, self._framework, self._device)

    def _pick(self, tensor: Any, index: Any) -> Any:
        """What NumPy makes of an index, in the framework's form: frameworks have meanings of their own for lists and masks, or none."""
        if self._backend == "pread":
            tensor = tensor._copy()
        import numpy

        picked = numpy.asarray(tensor._numpy(*carrying_tools())[index])
        return adopt(picked, tensor.dtype, self._framework, self._device)

    def keys(self) -> List[str]:
        """Names, sorted."""
        return self._open()._sorted_names()

    def offset_keys(self) -> List[str]:
        """Names, in the order of the data."""
        return self._open()._names()

    def metadata(self) -> Optional[Dict[str, str]]:
        """What the file says about itself, or None."""
        return self._open().metadata

    def get_tensor(self, name: str) -> Any:
        """One of them."""
        return self._give(self._tensor(name))

    def get_tensors(self) -> Dict[str, Any]:
        """All of them, in the order of the data."""
        checkpoint = self._open()
        if self._backend == "pread":
            checkpoint = checkpoint._in_memory()
        return tensors_of(checkpoint, self._framework, self._device)

    def get_slice(self, name: str) -> SafeSlice:
        """A tensor of which only a part is wanted."""
        place = functools.partial(on_device, device=self._device)
        exact = self._exact_slices and self._framework != "paddle"  # there the reference leaves them to Paddle, which does as NumPy
        return SafeSlice(self._tensor(name), self._give, self._pick, place, self._framework, self._backend, exact)

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(self, *error: Any) -> None:
        self._checkpoint = None


def _safe_open_handle(f: Any, framework: str, device: Union[str, int] = "cpu", *, backend: str = "mmap") -> safe_open:
    """The same for a file object, which is opened again by its name."""
    f.fileno()
    return safe_open(f.name, framework, device, backend=backend)


def tensors_of(checkpoint: Any, framework: str, device: Union[str, int]) -> Dict[str, Any]:
    """Every tensor in the framework's form."""
    if framework == "pytorch":
        if is_cuda(device):
            from ._transfer import to_device

            return to_device(checkpoint, device)
        tensors: Dict[str, Any] = checkpoint._torch_dict(*torch_tools())
        return tensors if is_cpu(device) else {name: on_device(tensor, device) for name, tensor in tensors.items()}
    if framework == "numpy":
        return checkpoint._numpy_dict(*numpy_tools())
    carried = checkpoint._numpy_dict(*carrying_tools())
    return {name: adopt(array, checkpoint._tensor(name).dtype, framework, device) for name, array in carried.items()}


def load_bytes(data: bytes, framework: str, device: Any = "cpu") -> Dict[str, Any]:
    """The tensors of a Safetensors file in memory, in memory of their own."""
    return tensors_of(parse(data)._in_memory(), framework, "cpu" if device is None else device)


def load_path(filename: Any, framework: str, device: Any = "cpu", *, backend: str = "mmap") -> Dict[str, Any]:
    """The tensors of a Safetensors file."""
    checkpoint = open_file(filename, backend)
    return tensors_of(checkpoint if backend == "mmap" else checkpoint._in_memory(), framework, "cpu" if device is None else device)


def on_device(tensor: Any, device: Union[str, int]) -> Any:
    return tensor if is_cpu(device) else tensor.to(device)
