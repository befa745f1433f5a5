# SPDX-License-Identifier: Apache-2.0
"""diff, stats, verify, scan, hash: what is in a file, with the GIL free and several threads at work."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from . import _native
from ._checkpoint import Patterns, Renames, StrPath
from ._files import Progress, Tensors, _stepped, _steps, _taken, _warn_unmatched


@dataclass(frozen=True)
class Distance:
    """How far the values of two tensors are apart."""

    count: int
    differing: int
    outside: int  #: by more than the tolerance
    first: int  #: place of the first that differs
    max_abs: float
    max_rel: float
    max_ulp: Optional[int]
    cosine: Optional[float]
    rel_l2: Optional[float] = None  #: the length of a - b as a vector, as a part of a's; None when a is all zero
    l2_a: float = 0.0  #: the lengths of a, b and a - b as vectors; squares of several tensors add up to those of a layer
    l2_b: float = 0.0
    l2_diff: float = 0.0
    nan_a: Optional[int] = None  #: place of the first NaN of a, row by row
    nan_b: Optional[int] = None  #: and of b


@dataclass(frozen=True)
class Difference:
    """One tensor of a diff. ``change``: equal, within-tolerance, values, dtype, shape, renamed, only-a, only-b, layout."""

    change: str
    name: str
    other: str
    dtype_a: Optional[str]
    dtype_b: Optional[str]
    shape_a: Optional[Tuple[int, ...]]
    shape_b: Optional[Tuple[int, ...]]
    distance: Optional[Distance]


@dataclass(frozen=True)
class DiffReport:
    """``if diff(a, b).same: …``"""

    tensors: List[Difference]

    @property
    def same(self) -> bool:
        return all(tensor.change in ("equal", "within-tolerance") for tensor in self.tensors)

    @property
    def changes(self) -> List[Difference]:
        """All that are not equal."""
        return [tensor for tensor in self.tensors if tensor.change != "equal"]


def diff(
    a: Tensors,
    b: Tensors,
    *,
    root: Optional[str] = None,
    rename: Renames = None,
    rules: Optional[StrPath] = None,
    strip_prefixes: bool = False,
    include: Patterns = None,
    exclude: Patterns = None,
    reindex: Patterns = None,
    keep_positions: Patterns = None,
    dtype: Any = None,
    keep_dtype: Patterns = None,
    keep_statistics: bool = True,
    tolerance: float = 0.0,
    relative: float = 0.0,
    find_renamed: bool = True,
    inert: bool = False,
    io: str = "read",
    progress: Progress = None,
) -> DiffReport:
    """Two files, checkpoints or dicts of tensors, compared by every name, shape, dtype and value.

    Of a file the state dict is taken, found by itself unless ``root`` says where (``""``: everything); a Checkpoint or a dict as it is.
    ``root``, ``include`` and ``exclude`` hold for both (a ``b`` that is a state dict as a whole needs no ``root``); the other steps are
    done to ``a`` alone: those that made ``b`` of it.
    """
    options = {"tolerance": tolerance, "relative": relative, "find_renamed": find_renamed, "progress": progress}
    found = []
    steps = _steps(
        root=root, rename=rename, rules=rules, strip_prefixes=strip_prefixes, include=include, exclude=exclude, reindex=reindex,
        keep_positions=keep_positions, dtype=dtype, keep_dtype=keep_dtype, keep_statistics=keep_statistics,
    )  # fmt: skip
    left, unmatched = _stepped(a, steps, inert, io, dequantize=True)
    right, not_in_b = _stepped(b, steps, inert, io, dequantize=True, of_other=True)
    asked_of_b = [pattern for given in (include, exclude) for pattern in ([given] if isinstance(given, str) else given or ())]
    _warn_unmatched((pattern for pattern in unmatched if pattern not in asked_of_b or pattern in not_in_b), stacklevel=3)
    for entry in _native.diff(left, right, options):
        distance = entry.pop("distance")
        found.append(Difference(**entry, distance=Distance(**distance) if distance else None))
    return DiffReport(found)


@dataclass(frozen=True)
class Finding:
    """Something wrong. ``kind``: nan, inf, zero, large, checksum, receipt. ``name`` is None for the file as a whole."""

    name: Optional[str]
    kind: str
    count: int
    detail: str
    first: Optional[int] = None  #: place of the first NaN or infinity, row by row


@dataclass(frozen=True)
class VerifyReport:
    """``if verify(path).clean: …``"""

    findings: List[Finding]
    notes: List[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.findings


_QUANTILES = (0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999)


def stats(
    source: Tensors,
    *,
    root: Optional[str] = None,
    rename: Renames = None,
    rules: Optional[StrPath] = None,
    strip_prefixes: bool = False,
    include: Patterns = None,
    exclude: Patterns = None,
    reindex: Patterns = None,
    keep_positions: Patterns = None,
    dtype: Any = None,
    keep_dtype: Patterns = None,
    keep_statistics: bool = True,
    quantiles: Union[bool, Iterable[float]] = False,
    histogram: bool = False,
    inert: bool = False,
    io: str = "read",
    progress: Progress = None,
) -> Dict[str, Dict[str, Any]]:
    """count, nan, inf, zeros, min, max, mean, std and absmax of each tensor.

    quantiles: shares from 0 to 1, or True for nine usual ones: a dict from each share to the smallest value that so many do not exceed. Exact for dtypes of 16 bits
    and fewer, within 2**-8 of the value for others. histogram: 256 "counts" between 257 "edges", which are further apart the larger the values.
    """
    steps = _steps(
        root=root or "", rename=rename, rules=rules, strip_prefixes=strip_prefixes, include=include, exclude=exclude, reindex=reindex,
        keep_positions=keep_positions, dtype=dtype, keep_dtype=keep_dtype, keep_statistics=keep_statistics,
    )  # fmt: skip
    shares = _QUANTILES if quantiles is True else tuple(quantiles or ())
    return _native.stats(_taken(source, steps, inert, io), list(shares), histogram, progress)


def verify(
    path: StrPath,
    *,
    root: Optional[str] = None,
    rename: Renames = None,
    rules: Optional[StrPath] = None,
    strip_prefixes: bool = False,
    include: Patterns = None,
    exclude: Patterns = None,
    reindex: Patterns = None,
    keep_positions: Patterns = None,
    dtype: Any = None,
    keep_dtype: Patterns = None,
    keep_statistics: bool = True,
    receipt: Optional[StrPath] = None,
    tensors_only: bool = False,
    allow_zeros: bool = False,
    max_abs: Optional[float] = None,
    inert: bool = False,
    expansion: float = 16.0,
    io: str = "read",
    progress: Progress = None,
) -> VerifyReport:
    """Is this file sound? Its structure (by opening it: what is wrong there is raised), its checksums, and its values.

    receipt: also whether it is what a conversion read or wrote; tensors_only: by its tensors, whatever its own bytes.
    """
    steps = _steps(
        root=root, rename=rename, rules=rules, strip_prefixes=strip_prefixes, include=include, exclude=exclude, reindex=reindex,
        keep_positions=keep_positions, dtype=dtype, keep_dtype=keep_dtype, keep_statistics=keep_statistics,
    )  # fmt: skip
    options = {
        **steps, "receipt": receipt, "tensors_only": tensors_only, "allow_zeros": allow_zeros,
        "max_abs": max_abs, "inert": inert, "expansion": expansion, "io": io, "progress": progress,
    }  # fmt: skip
    report = _native.verify(path, options)
    return VerifyReport([Finding(**finding) for finding in report["findings"]], report["notes"])


@dataclass(frozen=True)
class ScanReport:
    """What a file would do if Python loaded it. ``verdict`` is "clean", "unknown" or "danger"; ``globals`` and ``calls`` have name, offset, count, verdict, entry each."""

    format: str
    verdict: str
    clean: bool
    findings: List[Dict[str, Any]]
    globals: List[Dict[str, Any]]
    calls: List[Dict[str, Any]]


def scan(path: StrPath, *, checksums: bool = True) -> ScanReport:
    """Every global a pickle names and every call it makes, by the very parser that loads files. Nothing is run."""
    return ScanReport(**_native.scan(path, checksums))


@dataclass(frozen=True)
class Manifest:
    """SHA-256 of each tensor, and one root over all of them that depends on nothing but names, dtypes, shapes and values."""

    root: str
    tensors: Dict[str, str]


def hash(
    source: Tensors,
    *,
    root: Optional[str] = None,
    rename: Renames = None,
    rules: Optional[StrPath] = None,
    strip_prefixes: bool = False,
    include: Patterns = None,
    exclude: Patterns = None,
    reindex: Patterns = None,
    keep_positions: Patterns = None,
    dtype: Any = None,
    keep_dtype: Patterns = None,
    keep_statistics: bool = True,
    inert: bool = False,
    io: str = "read",
    progress: Progress = None,
) -> Manifest:
    """Equal roots, equal tensors: whatever the format, the order, the shards. What is taken of a file: see diff()."""
    steps = _steps(
        root=root, rename=rename, rules=rules, strip_prefixes=strip_prefixes, include=include, exclude=exclude, reindex=reindex,
        keep_positions=keep_positions, dtype=dtype, keep_dtype=keep_dtype, keep_statistics=keep_statistics,
    )  # fmt: skip
    return Manifest(**_native.hash(_taken(source, steps, inert, io), progress))
