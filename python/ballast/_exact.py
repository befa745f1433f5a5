# SPDX-License-Identifier: Apache-2.0
"""What ``safetensors`` makes of a subscript: which ones it takes, and what it says of the others. For ``ballast.compat``."""
from __future__ import annotations

import operator
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from ._errors import BadIndexError, SafetensorError

_INT32, _UINT64 = 2**31, 2**64


class _Part(NamedTuple):
    """Of one dimension: ``start`` to ``stop`` (None: as far as it goes), or the element ``start`` alone."""

    start: Optional[int]
    stop: Optional[int]
    step: int
    alone: bool

    def __str__(self) -> str:
        if self.alone:
            return str(self.start)
        bounds = f"{'' if self.start is None else self.start}:{'' if self.stop is None else self.stop}"
        return bounds if self.step == 1 else f"{bounds}:{self.step}"


_ALL = _Part(None, None, 1, False)


def _bound(value: Any) -> Optional[int]:
    if value is None:
        return None
    number = operator.index(value)
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number >= _UINT64:
        raise OverflowError("int too big to convert")
    return number


def _range(item: slice) -> _Part:
    start, stop = _bound(item.start), _bound(item.stop)
    step = 1 if item.step is None else operator.index(item.step)
    if step <= 0:
        raise SafetensorError(f"Slice step must be a positive integer, got {step}")
    return _Part(start, stop, step, False)


def _number(item: Any) -> Optional[int]:
    """None for what is none, and for truth values: they are 0 and 1 there, and new axes to NumPy."""
    is_truth = isinstance(item, bool) or "bool" in str(getattr(item, "dtype", ""))
    if is_truth or getattr(item, "ndim", 0) or not hasattr(item, "__index__"):
        return None
    number = operator.index(item)
    return number if -_INT32 <= number < _INT32 else None


def _element(item: Any, dim: int, shape: Sequence[int]) -> _Part:
    number = _number(item)
    if number is None:
        raise SafetensorError(f"Unsupported slice index at position {dim}: expected slice, int, or ellipsis")
    size = shape[dim] if dim < len(shape) else 0
    if number < -size:
        raise BadIndexError(f"Invalid index {number} for dimension {dim} of size {size}", "offset-out-of-range")
    return _Part(number % size if number < 0 else number, None, 1, True)


def _parts(items: Tuple[Any, ...], shape: Sequence[int]) -> List[_Part]:
    dots = sum(1 for item in items if item is Ellipsis)
    if dots > 1:
        raise SafetensorError("Only one ellipsis (...) is allowed in slice index")
    parts: List[_Part] = []
    for item in items:
        if item is Ellipsis:
            parts += [_ALL] * max(0, len(shape) - (len(items) - dots))
        else:
            parts.append(_range(item) if isinstance(item, slice) else _element(item, len(parts), shape))
    return parts


def check(index: Any, shape: List[int]) -> None:
    """Raises what ``safetensors`` raises, in its words."""
    if isinstance(index, list):
        if index:
            raise SafetensorError("Non empty lists are not implemented")
        index = (slice(0, 0),)
    parts = _parts(index if isinstance(index, tuple) else (index,), shape)
    what = f"Error during slicing [{', '.join(map(str, parts))}] with shape {shape}"
    if len(parts) > len(shape):
        raise BadIndexError(f"{what}: more slicing indexes than dimensions in tensor", "offset-out-of-range")
    for dim in reversed(range(len(parts))):  # the last one outside is the one that is named
        part, size = parts[dim], shape[dim]
        start = part.start or 0
        stop = start + 1 if part.alone else size if part.stop is None else part.stop
        if start >= size or stop > size:
            asked = start if start >= size else stop - 1
            raise BadIndexError(f"{what}: index {asked} out of bounds for tensor dimension #{dim} of size {size}", "offset-out-of-range")
