# SPDX-License-Identifier: Apache-2.0
"""What get_slice gives: a tensor that is indexed before its bytes are touched."""
from __future__ import annotations

import operator
from typing import Any, Callable, List, Tuple

from ._errors import BadIndexError
from ._exact import check as check_exact
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
    is_truth = isinstance(item, bool) or "bool" in str(getattr(item, "dtype", ""))
    return hasattr(item, "__index__") and not is_truth and not getattr(item, "ndim", 0)


def _is_basic(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(item is None or item is Ellipsis or isinstance(item, slice) or _is_number(item) for item in items)


def _goes_backwards(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return any(isinstance(item, slice) and item.step is not None and operator.index(item.step) < 0 for item in items)


def check(index: Any, shape: List[int]) -> None:
    """Numbers outside the tensor, in the words of ``safetensors``."""
    if not _is_basic(index):
        return  # lists and masks: NumPy's
    items = index if isinstance(index, tuple) else (index,)
    if sum(1 for item in items if item is not None and item is not Ellipsis) > len(shape):
        shown = ", ".join(_text(item) for item in items)
        raise BadIndexError(f"Error during slicing [{shown}] with shape {shape}: more slicing indexes than dimensions in tensor", "offset-out-of-range")
    placed = [(item.__index__(), dim) for item, dim in zip(items, _dims_of(items, len(shape))) if dim >= 0 and not isinstance(item, slice)]
    for number, dim in placed:
        if number < -shape[dim]:
            raise BadIndexError(f"Invalid index {number} for dimension {dim} of size {shape[dim]}", "offset-out-of-range")
    for number, dim in reversed(placed):  # the reference names the last one that is outside
        if number >= shape[dim]:
            raise _out_of_bounds(items, shape, number, dim)


class SafeSlice:
    """``get_shape()``, ``get_dtype()``, and ``[...]``, which means what it means to NumPy, whatever the framework.

    ``exact``: what ``safetensors`` refuses is refused, in its words.
    """

    __slots__ = ("_tensor", "_give", "_pick", "_place", "_framework", "_backend", "_exact", "_whole")

    def __init__(
        self, tensor: Any, give: Callable[[Any], Any], pick: Callable[[Any, Any], Any], place: Callable[[Any], Any], framework: str, backend: str, exact: bool
    ) -> None:
        self._tensor = tensor
        self._give = give  # the framework's form of a Tensor, where it is wanted
        self._pick = pick  # of what NumPy picks of it
        self._place = place  # the framework's tensor, where it is wanted
        self._framework = framework
        self._backend = backend
        self._exact = exact
        self._whole: Any = None  # PyTorch's view of all of it

    def __repr__(self) -> str:
        return f"<slice of {self.get_dtype()} {self.get_shape()}>"

    def get_shape(self) -> List[int]:
        """As the file has it."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """Safetensors' code: "F32"."""
        return self._tensor.dtype

    def __getitem__(self, index: Any) -> Any:
        is_torch = self._framework == "pytorch"
        if is_torch and self._backend == "mmap" and self._tensor.dtype != "F4" and (self._exact or self._is_view(index)):
            if self._whole is None:
                self._whole = self._tensor._torch(*torch_tools())
            return self._place(self._whole[index])
        if self._exact:
            check_exact(index, self.get_shape())
        else:
            check(index, self.get_shape())
        return self._give(self._tensor[index]) if self._is_view(index) else self._pick(self._tensor, index)

    def _is_view(self, index: Any) -> bool:
        return _is_basic(index) and not (self._framework == "pytorch" and _goes_backwards(index))  # PyTorch's strides are never negative


PySafeSlice = SafeSlice
