# SPDX-License-Identifier: Apache-2.0
"""Checkpoint: what a file holds, as a mapping of names to lazy tensors; open() for every format."""
from __future__ import annotations

import os
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _native
from ._frameworks import dtype_name, numpy_tools, torch_tools
from ._tensor import Tensor

StrPath = Union[str, "os.PathLike[str]"]
Patterns = Union[str, Sequence[str], None]
Renames = Union[Dict[str, str], Iterable[Tuple[str, str]], None]


class Object:
    """An object of a Python class that is not here: its name and what the pickle would have made it from. Nothing was called."""

    __slots__ = ("type", "is_class", "args", "kwargs", "state", "items", "pairs", "attributes")

    def __init__(self, type: str, is_class: bool = False) -> None:
        self.type = type
        self.is_class = is_class
        self.args: Any = None
        self.kwargs: Any = None
        self.state: Any = None
        self.items: Any = None
        self.pairs: Any = None
        self.attributes: Any = None

    def __repr__(self) -> str:
        return f"<{'class' if self.is_class else 'object of'} {self.type}>"


class Checkpoint(_native.Checkpoint):
    """A read-only mapping of names to :class:`Tensor` in the file's order, and everything else the file holds.

    ``metadata`` (dict or None), ``format``, ``path``, ``notes``, ``nbytes``. The steps (``root``, ``rename``, ``filter``, ``cast``)
    give new checkpoints and move no data. ``with ballast.open(...) as f`` is only a scope: tensors stay valid after it.
    """

    __slots__ = ()

    def keys(self) -> KeysView[str]:
        """Names, in the file's order."""
        return KeysView(self)  # type: ignore[arg-type]

    def values(self) -> ValuesView[Tensor]:
        """Tensors, in the file's order."""
        return ValuesView(self)  # type: ignore[arg-type]

    def items(self) -> ItemsView[str, Tensor]:
        """(name, tensor), in the file's order."""
        return ItemsView(self)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __getitem__(self, name: str) -> Tensor:
        return self._tensor(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The tensor of a name, or ``default``."""
        return self._tensor(name) if name in self else default

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<ballast.Checkpoint {self.path!r}: {self.format}, {len(self)} tensors>"

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickled and copied by value, as the bytes of a Safetensors file: tensors, names that are tied, metadata. Not ``path``, ``format`` and
        ``value()``."""
        return _from_pickle, (_native.serialize(self),)

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def describe(self, name: str) -> Tuple[str, Tuple[int, ...], int]:
        """(dtype, shape, bytes) without making a tensor."""
        return self._describe(name)

    def value(self, path: str = "") -> Any:
        """What else the file holds, by a dotted path: ``value("optimizer.param_groups.0.lr")``; all of it without one.

        dict, list, tuple, set, numbers, text, None; tensors as :class:`Tensor`, objects of foreign classes as :class:`Object`.
        """
        return self._value(path)

    def numpy(self) -> Dict[str, Any]:
        """All tensors as NumPy arrays, without a copy; read-only unless the file was opened ``writable``."""
        return self._numpy_dict(*numpy_tools())

    def torch(self) -> Dict[str, Any]:
        """All tensors as PyTorch tensors; without a copy when the file was opened ``writable``."""
        return self._torch_dict(*torch_tools())

    def load(self) -> "Checkpoint":
        """The same in memory that may be written, read by several threads; the file is not needed any more."""
        return self._in_memory()

    def prefetch(self) -> None:
        """Makes the mapped pages present, with several threads, so that nothing waits for them later."""
        self._prefetch()

    def root(self, path: Optional[str] = None) -> "Checkpoint":
        """What lies at a dotted path, its tensors named from there; without one the state dict is found by itself."""
        return self._root(path)

    def rename(self, rules: Renames) -> "Checkpoint":
        """[(pattern, replacement), …], each on the result of the one before; patterns are RE2's, ``$1`` stands for a group."""
        return self._rename(list(rules.items()) if isinstance(rules, dict) else list(rules or ()))

    def filter(self, include: Patterns = None, exclude: Patterns = None) -> "Checkpoint":
        """Names that match one of ``include`` (all, when there is none) and none of ``exclude``."""
        return self._filter({"include": include, "exclude": exclude})

    def dequantize(self) -> "Checkpoint":
        """8-bit weights with scales (``convert(…, quantize="int8")``) as floating-point tensors again; a Checkpoint without such tensors as it is."""
        return self._dequantize()

    def with_metadata(self, metadata: Optional[Dict[str, str]]) -> "Checkpoint":
        """Other metadata. What Ballast says of the tensors there (keys that begin with ``ballast.``) stays."""
        return self._with_metadata(metadata)

    def ties(self) -> Dict[str, str]:
        """Names of tensors that are the very same tensor as another: second name to first."""
        return self._ties()

    def cast(self, dtype: Any, exclude: Patterns = None) -> "Checkpoint":
        """Floating-point tensors as another dtype (spelled as in :meth:`Tensor.to`), computed when they are read."""
        return self._cast({"dtype": dtype_name(dtype), "exclude": exclude})


Mapping.register(Checkpoint)
_native.register_checkpoint_class(Checkpoint)


def _texts(paths: Optional[Iterable[StrPath]]) -> Optional[List[str]]:
    """One path is a mistake for a list of them, and would be taken letter by letter."""
    return None if paths is None else [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]  # type: ignore[list-item]


def set_identities(identities: Optional[Iterable[StrPath]] = None, *, passphrase_file: Optional[StrPath] = None) -> None:
    """What opens files encrypted with age (docs/seal.md) wherever a call names nothing itself: paths of identity files, or their text. Until set, the file that
    ``BALLAST_IDENTITY`` of the environment names."""
    _native.set_identities({"identities": _texts(identities), "passphrase_file": passphrase_file})


def _from_pickle(data: bytes) -> Checkpoint:
    return _native.open_bytes(data, {"inert": False, "expansion": None, "identities": None, "passphrase_file": None})  # type: ignore[return-value]


def _content_of(file: Any) -> Optional[bytes]:
    """The bytes of what is no path: bytes, or a file object such as io.BytesIO, from where it stands to its end."""
    if isinstance(file, (bytes, bytearray, memoryview)):
        return bytes(file)
    if isinstance(file, (str, os.PathLike)) or not hasattr(file, "read"):
        return None
    content = file.read()
    if not isinstance(content, (bytes, bytearray)):
        raise TypeError(f"{type(file).__name__} reads {type(content).__name__}, not bytes: open it in binary mode")
    return bytes(content)


def open(
    path: Union[StrPath, bytes, bytearray, memoryview, BinaryIO],
    *,
    writable: bool = False,
    io: str = "auto",
    inert: bool = False,
    expansion: float = 16.0,
    identities: Optional[Iterable[StrPath]] = None,
    passphrase_file: Optional[StrPath] = None,
) -> Checkpoint:
    """Any file Ballast reads: Safetensors, PyTorch's (zip, legacy, tar, TorchScript, bare pickle), ``.npz``, ``.npy``, ONNX models (their initializers), Burn's, records,
    an ``index.json`` of shards or a folder with one. By content, never by name; nothing in it is run.

    Tensors are read-only views of the mapped file. ``writable``: they may be written, in memory of this process alone; the file never
    changes. Bytes and file objects (``io.BytesIO``, which is read to its end) are the content of a file, whatever its format; there is
    nothing to map then, and what is ``writable`` is a copy. ``io="read"``: nothing is mapped, tensors are read when they are needed;
    ``"direct"``: the same past the page cache; ``"auto"`` maps, and reads on a network file system. ``inert``: read past calls that could run code.
    ``expansion``: all tensors of a PyTorch file together may show 64 MiB and so many times the size of the file.
    ``identities`` and ``passphrase_file`` open files encrypted with age: paths of identity files (or their text), a file whose first line is the passphrase.
    """
    options = {"io": io, "writable": writable, "inert": inert, "expansion": expansion, "identities": _texts(identities), "passphrase_file": passphrase_file}
    content = _content_of(path)
    if content is None:
        return _native.open(path, options)  # type: ignore[return-value]
    if io != "auto":
        raise ValueError(f"io={io!r} is a way to read files, and these are bytes")
    checkpoint: Checkpoint = _native.open_bytes(content, options)  # type: ignore[assignment]
    return checkpoint.load() if writable else checkpoint


def open_value(path: StrPath, dotted: str = "") -> Any:
    """What a file holds besides tensors, or a JSON file; ``dotted`` leads to a part of it."""
    return _native.open_value(path, dotted)


__all__: List[str] = ["Checkpoint", "Object", "open", "open_value", "set_identities"]
