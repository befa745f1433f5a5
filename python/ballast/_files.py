# SPDX-License-Identifier: Apache-2.0
"""save, convert: whole files, with the GIL free and several threads at work."""
from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from . import _native
from ._checkpoint import Checkpoint, Patterns, Renames, StrPath, _texts
from ._checkpoint import open as open_checkpoint
from ._frameworks import dtype_name, numpy_spec
from ._tensor import Tensor

Progress = Optional[Callable[[int, int], Any]]
Tensors = Union[StrPath, Checkpoint, Mapping[str, Any]]

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def _bytes_of(size: Union[int, str, None]) -> int:
    """5_000_000_000 or "5GB"."""
    number: float = -1
    if size is None or isinstance(size, int):
        number = size or 0
    elif match := re.fullmatch(r"\s*([0-9]+[.]?[0-9]*|[.][0-9]+)\s*([A-Za-z]*)\s*", size):
        number = float(match.group(1)) * _UNITS.get(match.group(2).upper(), -1)
    if not 0 <= number < 2**63:
        raise ValueError(f"{size!r} is no size: a number of bytes, or one with KB, MB, GB, KiB, MiB, GiB")
    return int(number)


# Dtypes that .pt files alone hold.
_PYTORCHS_OWN = {
    "complex128": "C128", "complex32": "C32", "bits8": "BITS8", "bits16": "BITS16", "bits1x8": "BITS1X8", "bits2x4": "BITS2X4", "bits4x2": "BITS4X2",
}  # fmt: skip


def _spec_of(name: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        return (name, value)
    if type(value).__module__.split(".")[0] == "torch" or hasattr(value, "data_ptr"):
        from .torch import _spec

        try:
            return _spec(name, value.detach().contiguous(), _PYTORCHS_OWN)
        except KeyError:
            raise TypeError(f"tensor {name!r} is {value.dtype}, which no file of Ballast's holds: cast it first, and dequantize() what is quantized") from None
    if isinstance(value, (Mapping, Checkpoint)):
        raise TypeError(f"{name!r} is a {type(value).__name__} of tensors, and no tensor: names are flat, as in {{'{name}.{next(iter(value), 'weight')}': …}}")
    if value is None or isinstance(value, (str, bytes)):
        raise TypeError(f"{name!r} is {'None' if value is None else 'text'}, and no tensor; text belongs into the metadata")
    import numpy

    array = value if isinstance(value, numpy.ndarray) else numpy.asarray(value)
    return numpy_spec(name, array, "C128" if array.dtype.name == "complex128" else "")


def checkpoint(tensors: Tensors, metadata: Optional[Dict[str, str]] = None) -> Checkpoint:
    """A Checkpoint of whatever holds tensors: a path, a Checkpoint, or a mapping of names to ours, NumPy's or PyTorch's.

    ``metadata`` takes the place of what a file or Checkpoint says about itself; what it says of its tensors stays.
    """
    if not hasattr(tensors, "items"):
        tensors = open_checkpoint(tensors)  # type: ignore[arg-type]
    if isinstance(tensors, Checkpoint):
        return tensors if metadata is None else tensors.with_metadata(metadata)
    return _native.from_specs([_spec_of(name, value) for name, value in tensors.items()], metadata, True)  # type: ignore[union-attr,return-value]


def _steps(*, rename: Renames, dtype: Any, **others: Any) -> Dict[str, Any]:
    """The steps (docs/options.md) as the library takes them."""
    renames = None if rename is None else list(rename.items()) if isinstance(rename, dict) else list(rename)
    return {**others, "rename": renames, "dtype": None if dtype is None else dtype_name(dtype)}


def _stepped(source: Tensors, steps: Dict[str, Any], inert: bool, io: str, **how: bool) -> Tuple[Checkpoint, List[str]]:
    """What is compared, hashed or measured, and the patterns that matched nothing in it. Of a file the state dict is taken (``root=None``
    finds it, ``""`` takes everything), of what is in memory all."""
    is_path = not hasattr(source, "items")
    taken = open_checkpoint(source, io=io, inert=inert) if is_path else checkpoint(source)  # type: ignore[arg-type]
    if steps["root"] is None and not is_path:
        steps = {**steps, "root": ""}
    done = taken._steps({**steps, **how})
    return done["checkpoint"], done["unmatched"]


def _warn_unmatched(patterns: Iterable[str], *, stacklevel: int) -> None:
    for pattern in patterns:
        warnings.warn(f"the pattern {pattern!r} matched nothing", stacklevel=stacklevel)


def _taken(source: Tensors, steps: Dict[str, Any], inert: bool, io: str) -> Checkpoint:
    taken, unmatched = _stepped(source, steps, inert, io)
    _warn_unmatched(unmatched, stacklevel=4)
    return taken


def save(
    path: StrPath,
    tensors: Union[Checkpoint, Mapping[str, Any]],
    metadata: Optional[Dict[str, str]] = None,
    *,
    format: Optional[str] = None,
    simplify: bool = False,
    check: bool = True,
    overwrite: bool = False,
    shard_size: Union[int, str, None] = None,
    pack: Optional[str] = None,
    recipients: Optional[Iterable[str]] = None,
    passphrase_file: Optional[StrPath] = None,
    progress: Progress = None,
) -> None:
    """Tensors as a file, whose format follows its extension: .safetensors, .pt, .npz, .npy, .bpk, .mpk, .record.

    ``tensors``: names to Tensor, numpy.ndarray or torch.Tensor, mixed as you like, or a Checkpoint. The old file or the whole new one is
    there afterwards, whatever happens; an old one is replaced only with ``overwrite=True``. Checksums of the files the tensors come from (zip, records)
    are compared unless ``check=False``. ``metadata`` replaces a Checkpoint's, but what it says of its tensors (``ballast.…``: what is quantized, whose layout it is) stays. ``shard_size``: Safetensors files of at most so much each ("5GB"), and an index.
    ``pack``: "fast" or "small" makes a Safetensors file or a record smaller without loss (docs/formats/packed.md).

    ``recipients`` (["age1…"]) or ``passphrase_file``: encrypted with age; the name then ends in ".safetensors.age" (docs/seal.md).
    """
    options = {
        "format": format, "simplify": simplify, "check": check, "overwrite": overwrite, "shard_bytes": _bytes_of(shard_size), "pack": pack, "recipients": _texts(recipients),
        "passphrase_file": passphrase_file, "progress": progress,
    }  # fmt: skip
    _native.save(checkpoint(tensors, metadata), path, options)


@dataclass(frozen=True)
class Conversion:
    """What convert() did."""

    tensors: List[str]  #: names in the output
    origins: List[str]  #: for each the name or names it had
    root: str  #: where the state dict was found by itself
    unmatched: List[str]  #: patterns that matched nothing
    cast: int  #: tensors that have another dtype now
    rounded: int  #: values the cast changed
    overflowed: int  #: finite values that are finite no more
    files: List[str]  #: shards that were written
    notes: List[str]


def convert(
    source: StrPath,
    target: StrPath,
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
    adapter: Optional[str] = None,
    layout: Optional[str] = None,
    layers: Optional[Mapping[str, str]] = None,
    like: Optional[StrPath] = None,
    quantize: Optional[str] = None,
    format: Optional[str] = None,
    state_dict: bool = False,
    simplify: bool = False,
    burn: Optional[str] = None,
    meta: Optional[Mapping[str, str]] = None,
    overwrite: bool = False,
    shard_size: Union[int, str, None] = None,
    pack: Optional[str] = None,
    recipients: Optional[Iterable[str]] = None,
    passphrase_file: Optional[StrPath] = None,
    receipt: Optional[StrPath] = None,
    inert: bool = False,
    expansion: float = 16.0,
    check: bool = True,
    io: str = "auto",
    progress: Progress = None,
) -> Conversion:
    """One file into another, streamed; the steps in the order of the options, from root to dtype (docs/options.md).

    ``layout``: whose names and layouts the target gets ("pytorch", "burn", "native"; Burn's formats get Burn's unless another is said), ``adapter``: whose the
    source has where it does not say, ``layers``: {pattern on a layer's path: "linear", "embedding", …} and ``like``: a file of the same model as it shall become,
    both for what names and shapes leave open. ``burn``: the oldest Burn that must read an .mpk or .bpk ("0.20").

    ``state_dict``: the state dict alone, found by itself, of a .pt that becomes a .pt, too; without any step such files keep all that they hold.

    ``meta``: said in the target's metadata, in addition to what the source says (Safetensors, records).

    Checksums that the source holds (zip, records) are compared unless ``check=False``: damage is not passed on as sound.

    ``pack``: "fast" or "small" makes a Safetensors target or a record smaller without loss (docs/formats/packed.md); readers unpack it by themselves.

    ``recipients`` (["age1…"]) or ``passphrase_file``: the target is encrypted with age, and its name ends in ".safetensors.age" (docs/seal.md).

    ``progress(done, total)`` is called with bytes; what it raises stops the work, and nothing is left of it.
    """
    if quantize not in (None, "int8"):
        raise ValueError(f"quantize: only 'int8', not {quantize!r}")
    steps = _steps(
        root=root, rename=rename, rules=rules, strip_prefixes=strip_prefixes, include=include, exclude=exclude, reindex=reindex,
        keep_positions=keep_positions, dtype=dtype, keep_dtype=keep_dtype, keep_statistics=keep_statistics,
    )  # fmt: skip
    options = {
        **steps, "adapter": adapter, "layout": layout, "layers": dict(layers) if layers else None, "like": like, "burn": burn, "quantize_int8": quantize == "int8",
        "format": format, "state_dict": state_dict, "simplify": simplify, "meta": dict(meta) if meta else None, "overwrite": overwrite, "shard_bytes": _bytes_of(shard_size),
        "pack": pack, "recipients": _texts(recipients), "passphrase_file": passphrase_file, "receipt": receipt, "inert": inert, "expansion": expansion, "check": check, "io": io, "progress": progress,
    }  # fmt: skip
    return Conversion(**_native.convert(source, target, options))
