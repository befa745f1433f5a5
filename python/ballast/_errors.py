# SPDX-License-Identifier: Apache-2.0
"""The one exception of the package. ``code`` is a stable word (docs/errors.md), ``where`` the file or tensor it happened in.

Some errors are one of Python's own as well: a file that is not there is also a FileNotFoundError, so that both ``except`` clauses
work. What ``safetensors`` says in a case of its own is the text of the exception; what Ballast has to say beyond that is in
``detail``, and is shown below the traceback since Python 3.11.
"""
from __future__ import annotations

import errno
import os
import re
from typing import Any, Dict, Optional, Tuple, Type


class SafetensorError(Exception):
    """Everything that Ballast cannot do, or refuses to."""

    code: str
    where: str
    detail: str

    def __init__(self, message: str = "", code: str = "invalid-argument", where: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.where = where
        self.detail = detail
        if isinstance(self, OSError):
            self.errno = _ERRNO.get(type(self))
            self.filename = where or None
        if detail and hasattr(self, "add_note"):
            self.add_note(detail)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.message, self.code, self.where, self.detail)


SafetensorError.__module__ = "ballast"


class MissingFileError(SafetensorError, FileNotFoundError):
    """There is no such file."""


class ExistingFileError(SafetensorError, FileExistsError):
    """The output is there and overwriting was not asked for."""


class ForbiddenFileError(SafetensorError, PermissionError):
    """The operating system does not allow it."""


class FolderError(SafetensorError, IsADirectoryError):
    """A folder where a file is needed."""


class FileError(SafetensorError, OSError):
    """The operating system said no."""


class MissingKeyError(SafetensorError, KeyError):
    """No such tensor, key or path."""


class ArgumentError(SafetensorError, ValueError):
    """An argument that means nothing."""


class BadIndexError(SafetensorError, IndexError):
    """A subscript outside the tensor."""


_ERRNO: Dict[type, int] = {
    MissingFileError: errno.ENOENT, ExistingFileError: errno.EEXIST, ForbiddenFileError: errno.EACCES, FolderError: errno.EISDIR,
}  # fmt: skip

_CLASSES: Dict[str, Type[SafetensorError]] = {
    "file-not-found": MissingFileError,
    "already-exists": ExistingFileError,
    "permission-denied": ForbiddenFileError,
    "io-error": FileError,
    "not-regular-file": FileError,
    "no-space": FileError,
    "not-found": MissingKeyError,
    "invalid-argument": ArgumentError,
}


def make(code: str, where: str, what: str) -> SafetensorError:
    """An exception for an Error of the library; called by the compiled module."""
    kind = _CLASSES.get(code, SafetensorError)
    if code == "not-regular-file" and os.path.isdir(where):
        kind = FolderError
    return kind(what, code, where)


# What the reference says where the library has a code; the rest is invalid JSON to it.
_OFFSET = "invalid offset for tensor `{name}`"
MISALIGNED = "The slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary, this is invalid."
_REFERENCE = {
    "header-too-large": "header too large",
    "gap": _OFFSET,
    "overlap": _OFFSET,
    "offset-out-of-range": _OFFSET,
    "size-mismatch": "invalid shape, data type, or offset for tensor",
    "size-overflow": "overflow computing buffer size from shape and/or element type",
    "misaligned": MISALIGNED,
    "trailing-data": "incomplete metadata, file not fully covered",
    "bad-utf8": "invalid UTF-8 in header: {what}",
    "bad-json": "invalid JSON in header: {what}",
    "bad-dtype": "invalid JSON in header: {what}",
    "bad-name": "invalid JSON in header: {what}",
    "duplicate-key": "invalid JSON in header: {what}",
    "too-deep": "invalid JSON in header: {what}",
    "too-many": "invalid JSON in header: {what}",
}
_MAX_HEADER = 100_000_000


def _wrong_start(head: bytes) -> str:
    if len(head) < 8:
        return "header too small"
    return "header too large" if int.from_bytes(head[:8], "little") > _MAX_HEADER else "invalid header length"


def _reference_text(error: SafetensorError, head: bytes) -> Optional[str]:
    if error.code == "unknown-format":
        return _wrong_start(head)
    if error.code == "truncated":
        return "incomplete metadata, file not fully covered" if "of them data" in error.message else _wrong_start(head)
    text = _REFERENCE.get(error.code)
    if text is None:
        return None
    name = re.search(r'tensor "((?:[^"\\]|\\.)*)"', error.message)
    what = error.message
    if error.where and what.startswith(error.where + ": "):
        what = what[len(error.where) + 2 :]
    return text.format(name=name.group(1) if name else "", what=what)


def as_reference(error: SafetensorError, prefix: str, head: bytes) -> SafetensorError:
    """The same error in the words of ``safetensors``; ``head`` is how the file begins."""
    text = _reference_text(error, head)
    if text is None:
        return error
    return SafetensorError(prefix + text, error.code, error.where, error.message)
