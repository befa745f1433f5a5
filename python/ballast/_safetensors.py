# SPDX-License-Identifier: Apache-2.0
"""safe_open, serialize and the like: the interface of ``safetensors``, name for name."""
from __future__ import annotations

import functools
import json
import operator
import os
import stat
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _native
from ._adopt import adopt, carrying_tools
from ._errors import FileError, MissingFileError, SafetensorError, as_reference
from ._frameworks import need_text, numpy_tools, torch_tools
from ._serialize import need_path
from ._slices import SafeSlice

_FRAMEWORKS = {
    "pt": "pytorch", "torch": "pytorch", "pytorch": "pytorch", "np": "numpy", "numpy": "numpy", "tf": "tensorflow",
    "tensorflow": "tensorflow", "jax": "flax", "flax": "flax", "mlx": "mlx", "paddle": "paddle",
}  # fmt: skip
_DEVICES = ("cpu", "cuda", "musa", "mps", "npu", "xpu", "xla", "mlu", "hpu")
_BACKENDS = ("mmap", "pread")


def parse(data: bytes) -> Any:
    """A Checkpoint whose tensors are views of ``data``."""
    if not isinstance(data, bytes):
        try:
            data = bytes(memoryview(data))
        except TypeError:
            need_text("bytes", data, bytes)
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


def _head_of(filename: Any, size: int = 8) -> bytes:
    """Its first bytes; none of what cannot be read, and of what is no regular file: a pipe would be waited for, a device might act."""
    try:
        descriptor = os.open(filename, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with open(descriptor, "rb") as file:
            return file.read(size) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except (OSError, ValueError):
        return b""


def need_backend(backend: Any) -> None:
    need_text("backend", backend)
    if backend not in _BACKENDS:
        raise SafetensorError(f'backend {json.dumps(backend, ensure_ascii=False)} is invalid (expected one of: "mmap", "pread")')


def open_file(filename: Any, backend: str) -> Any:
    """A Checkpoint of a Safetensors file, its errors in the words of ``safetensors``."""
    need_path(filename)
    need_backend(backend)
    try:
        return _native.open(filename, {"safetensors": True, "io": "map" if backend == "mmap" else "read", "writable": backend == "mmap"})
    except (FileError, MissingFileError, ValueError) as error:
        if os.path.lexists(filename):
            raise
        raise MissingFileError(f"No such file or directory: {os.fspath(filename)}", "file-not-found", os.fspath(filename), str(error)) from None
    except SafetensorError as error:
        raise as_reference(error, "Error while deserializing header: ", _head_of(filename)) from None


def framework_of(name: Any) -> str:
    need_text("framework", name)
    try:
        return _FRAMEWORKS[name]
    except (KeyError, TypeError):
        raise SafetensorError(f"framework {name} is invalid") from None


def _device_number(device: str, number: str) -> int:
    if ":" in number:
        raise SafetensorError(f"device {device} is invalid")
    digits = number[1:] if number.startswith("+") else number
    if not number:
        raise ValueError("cannot parse integer from empty string")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("invalid digit found in string")
    if int(digits) >= 2**64:
        raise ValueError("number too large to fit in target type")
    return int(digits)


def device_of(device: Any) -> Union[str, int]:
    """A name with or without a number, or a bare number, which means whatever the framework thinks it does. None is the CPU."""
    if device is None:
        return "cpu"
    if not isinstance(device, str) and type(device).__module__.split(".")[0] == "torch":
        device = str(device)
    if isinstance(device, str):
        kind, colon, number = device.partition(":")
        if kind in _DEVICES and not colon or kind == "cpu" and number.isdigit():  # cpu:0 is what PyTorch calls it
            return device
        if kind in _DEVICES and kind != "cpu":
            at = _device_number(device, number)
            if kind == "mps" and at:
                raise SafetensorError(f"device {device} is invalid: only mps or mps:0 is supported")
            return f"{kind}:{at}"
        raise SafetensorError(f"device {device} is invalid")
    if hasattr(device, "__index__") and 0 <= operator.index(device) < 2**64:
        return operator.index(device)
    raise SafetensorError(f"device {device!r} is invalid")


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

    __slots__ = ("_framework", "_device", "_checkpoint", "_backend")
    _exact_slices = False

    def __init__(self, filename: Union[str, "os.PathLike[str]"], framework: str, device: Union[str, int] = "cpu", *, backend: str = "mmap") -> None:
        need_path(filename)
        self._framework = framework_of(framework)
        self._device = device_of(device)
        need_backend(backend)
        if self._framework not in ("pytorch", "paddle") and not is_cpu(self._device) and os.path.exists(filename):
            name = self._device if isinstance(self._device, int) or ":" in self._device or self._device == "mps" else f"{self._device}:0"
            raise SafetensorError(f"Device {name} is not supported for framework {self._framework}")
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
        need_text("name", name)
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
        exact = self._exact_slices and (self._framework != "paddle" or self._backend != "mmap")  # there the reference leaves them to Paddle, which does as NumPy
        return SafeSlice(self._tensor(name), self._give, self._pick, place, self._framework, self._backend, exact)

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(self, _exc_type: Any, _exc_value: Any, _traceback: Any) -> None:
        self._checkpoint = None

    def __reduce__(self) -> Any:  # also what copy.copy asks
        raise TypeError(f"cannot pickle 'builtins.{type(self).__name__}' object")


class _safe_open_handle(safe_open):
    """The same for a file object, which is opened again by its name."""

    __slots__ = ()

    def __init__(self, f: Any, framework: str, device: Union[str, int] = "cpu", *, backend: str = "mmap") -> None:
        f.fileno  # what has none is no file
        super().__init__(f.name, framework, device, backend=backend)


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


def _is_foreign(filename: Any) -> bool:
    """A file that is something else than Safetensors, as far as its first bytes say: PyTorch's zip, stream or tar; a folder; an index."""
    if os.path.isdir(filename):
        return True
    head = _head_of(filename, 9)
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= 100_000_000:
        return False
    return head[:4] == b"PK\x03\x04" or head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05") or str(filename).endswith(".index.json")


def load_path(filename: Any, framework: str, device: Any = "cpu", *, backend: str = "mmap") -> Dict[str, Any]:
    """The tensors of a Safetensors file; of PyTorch's files those of the state dict, found by itself."""
    need_path(filename)
    filename = os.fspath(filename)
    if backend in _BACKENDS and _is_foreign(filename):
        try:
            checkpoint = _native.open(filename, {"io": "map" if backend == "mmap" else "read", "writable": backend == "mmap"})._root(None)
        except FileNotFoundError:  # a folder without a model is a folder, as safetensors says
            checkpoint = open_file(filename, backend)
    else:
        checkpoint = open_file(filename, backend)
    return tensors_of(checkpoint if backend == "mmap" else checkpoint._in_memory(), framework, "cpu" if device is None else device)


def on_device(tensor: Any, device: Union[str, int]) -> Any:
    return tensor if is_cpu(device) else tensor.to(device)
