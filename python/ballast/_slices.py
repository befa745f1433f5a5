# SPDX-License-Identifier: Apache-2.0
"""What get_slice gives: a tensor that is indexed before its bytes are touched."""
from __future__ import annotations

from typing import Any, Callable, List, Tuple

from ._errors import BadIndexError, SafetensorError
from ._frameworks import torch_tools


def _text(index: Any) -> str:
    if not isinstance(index, slice):
        return str(index)
    start = "" if index.start is None else str(index.start)
    stop = "" if index.stop is None else str(index.stop)
    return f"{start}:{stop}" if index.step is None else f"{start}:{stop}:{index.step}"


def _out_of_bounds(items: Tuple[Any, ...], shape: List[int], asked: int, dim: int) -> BadIndexError:
    shown = ", ".join(_text(item) for item in items)
    return BadIndexError(
        f"Error during slicing [{shown}] with shape {shape}: index {asked} out of bounds for tensor dimension #{dim} of size {shape[dim]}",
        "offset-out-of-range",
    )


def _dims_of(items: Tuple[Any, ...], rank: int) -> List[int]:
    """For each subscript the dimension it is about; -1 for None, ... and those beyond the last."""
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    dims, dim = [], 0
    for item in items:
        if item is Ellipsis:
            dim += max(rank - used, 0)
            dims.append(-1)
        elif item is None:
            dims.append(-1)
        else:
            dims.append(dim if dim < rank else -1)
            dim += 1
    return dims


def _is_number(item: Any) -> bool:
    return hasattr(item, "__index__") and not isinstance(item, bool) and not getattr(item, "ndim", 0)


def _is_basic(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(item is None or item is Ellipsis or isinstance(item, slice) or _is_number(item) for item in items)


def check(index: Any, shape: List[int], exact: bool) -> None:
    """Numbers outside the tensor, in the reference's words. ``exact``: also what NumPy allows and the reference does not."""
    if exact and isinstance(index, list) and index:
        raise SafetensorError("Non empty lists are not implemented")
    if not _is_basic(index):
        return  # lists and masks: NumPy's
    items = index if isinstance(index, tuple) else (index,)
    if sum(1 for item in items if item is not None and item is not Ellipsis) > len(shape):
        shown = ", ".join(_text(item) for item in items)
        raise BadIndexError(f"Error during slicing [{shown}] with shape {shape}: more slicing indexes than dimensions in tensor", "offset-out-of-range")
    for item, dim in zip(items, _dims_of(items, len(shape))):
        if dim < 0:
            continue
        size = shape[dim]
        if isinstance(item, slice):
            stop = item.stop
            if exact and stop is not None and stop.__index__() > size:
                raise _out_of_bounds(items, shape, stop.__index__(), dim)
            continue
        number = item.__index__()
        if number < -size:
            raise BadIndexError(f"Invalid index {number} for dimension {dim} of size {size}", "offset-out-of-range")
        if number >= size:
            raise _out_of_bounds(items, shape, number, dim)


class SafeSlice:
    """``get_shape()``, ``get_dtype()``, and ``[...]`` with all that NumPy (or PyTorch, for its tensors) understands."""

    __slots__ = ("_tensor", "_give", "_place", "_framework", "_backend", "_exact", "_whole")

    def __init__(self, tensor: Any, give: Callable[[Any], Any], place: Callable[[Any], Any], framework: str, backend: str, exact: bool) -> None:
        self._tensor = tensor
        self._give = give  # the framework's form of a Tensor, where it is wanted
        self._place = place  # the framework's tensor, where it is wanted
        self._framework = framework
        self._backend = backend
        self._exact = exact
        self._whole: Any = None  # PyTorch's view of all of it

    def get_shape(self) -> List[int]:
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        return self._tensor.dtype

    def __getitem__(self, index: Any) -> Any:
        if self._framework == "pytorch" and self._backend == "mmap" and self._tensor.dtype != "F4":
            if self._whole is None:
                self._whole = self._tensor._torch(*torch_tools())
            return self._place(self._whole[index])
        check(index, self.get_shape(), self._exact)
        return self._give(self._tensor[index]) if _is_basic(index) else self._give(self._tensor)[index]


PySafeSlice = SafeSlice
