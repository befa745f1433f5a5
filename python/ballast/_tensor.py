# SPDX-License-Identifier: Apache-2.0
"""Tensor: a view of a file's bytes, or of memory. Nothing is read before somebody asks for the numbers."""
from __future__ import annotations

from typing import Any, Iterator, Optional, Sequence, Tuple

from . import _native
from ._errors import BadIndexError, SafetensorError
from ._frameworks import NAMES, dtype_name, numpy_tools, torch_tools

_NOT_IN_NUMPY = ("BF16", "F8_", "F6_", "F4")
_BITS = {1: "U8", 2: "U16", 4: "U32", 8: "U64"}


class Tensor(_native.Tensor):
    """``dtype`` (a code: "F32"), ``shape``, ``strides``, ``size``, ``nbytes``; ``numpy()`` and ``torch()`` for the numbers.

    Indexing gives views, as in NumPy: ints, slices with any step, ``...`` and ``None``. ``numpy.asarray(t)``, ``memoryview(t)`` and
    ``from_dlpack(t)`` work without a copy. Tensors live as long as they are used, whether their file is closed or not.
    """

    __slots__ = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Tensor({self.dtype} {list(self.shape)})"

    def __getitem__(self, index: Any) -> "Tensor":
        try:
            return self._index(index)
        except SafetensorError as error:
            raise BadIndexError(error.message, error.code, error.where) from None

    def __iter__(self) -> Iterator["Tensor"]:
        return (self[i] for i in range(len(self)))

    def numpy(self) -> Any:
        """A numpy.ndarray of the same bytes; read-only when they may not be written.

        bfloat16 and the 8-bit floats need the package ml_dtypes; without it take ``to("F32")`` or ``bits()``.
        """
        return self._numpy(*numpy_tools())

    def torch(self) -> Any:
        """A torch.Tensor: of the same bytes where they may be written, of a copy where not (PyTorch has no read-only tensors)."""
        return self._torch(*torch_tools())

    def to(self, dtype: Any) -> "Tensor":
        """Every value converted, round to nearest even: ``to("F32")``, or "f32", "float32", ``numpy.float32``, ``torch.float32``.

        Where Safetensors' codes and NumPy's letters meet, small letters are NumPy's: "f4" is float32, "i8" int64; "F4" and "I8" are codes.
        """
        return self._cast(dtype_name(dtype))

    def bits(self) -> "Tensor":
        """The elements as unsigned integers of their size: bfloat16 as U16."""
        item = self.nbytes // self.size if self.size else 1
        code = _BITS.get(item)
        if code is None or (self.size and item * self.size != self.nbytes):
            raise TypeError(f"{self.dtype} elements are no whole integers")
        return self._reinterpret(code)

    def copy(self) -> "Tensor":
        """In memory of its own, row-major, free to be written."""
        return self._copy()

    def permute(self, *order: int) -> "Tensor":
        """The dimensions in another order; a view."""
        return self._permute(order)

    def reshape(self, *shape: int) -> "Tensor":
        """The same elements, row-major, under another shape: ``reshape(2, 3)`` or ``reshape((2, 3))``."""
        return self._reshape(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    @property
    def T(self) -> "Tensor":
        return self._permute(tuple(range(self.ndim))[::-1])

    def tolist(self) -> Any:
        """Python's numbers, in lists of lists."""
        return self.to("F32").numpy().tolist() if self.dtype.startswith(_NOT_IN_NUMPY) else self.numpy().tolist()

    def item(self) -> Any:
        """Python's number of a tensor of one element."""
        if self.size != 1:
            raise ValueError(f"only a tensor of one element is a number, this one is {list(self.shape)}")
        return self.reshape(1).tolist()[0]

    # Without these Python would take the buffer for the number's digits.
    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __index__(self) -> int:
        value = self.item()
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"only a tensor of one integer is an index, this one is {self.dtype}")
        return value

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickled and copied by value, as the bytes of a Safetensors file."""
        return _from_pickle, (_native.serialize(_native.from_specs([("tensor", self)], None, False)),)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("another dtype needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None, dl_device: Any = None, copy: Optional[bool] = None) -> Any:
        source = self._copy() if copy else self
        versioned = max_version is not None and max_version[0] >= 1
        # The old form cannot say that memory is read-only, and PyTorch does not look at what the new one says: writing there would end the process.
        if not source.writable and (not versioned or copy is not False):
            if copy is False:
                raise BufferError("read-only memory needs DLPack 1.0 or a copy")
            source = self._copy()
        try:
            return source._dlpack(versioned)
        except SafetensorError as error:
            raise BufferError(error.message) from None

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)


_native.register_tensor_class(Tensor)


def _from_pickle(data: bytes) -> Tensor:
    return _native.parse(data)._tensor("tensor").copy()


def framework_name(code: str) -> str:
    return NAMES.get(code, code)


__all__: Sequence[str] = ["Tensor", "framework_name"]
